"""Faults that a test makes: requests that fail, wait or lose their answer, and a disk that is full, broken or slow.

```python
faults = Faults(broker)
rule = faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=0, times=2)
```

| module | what |
|---|---|
| `faults`, `blocking` | the rules of one broker; the same for tests on other threads |
| `rule` | what all rules share: their hits, their limits, their text |
| `request_rules`, `disk_rules` | the rules for requests and for the disk |
| `request_faults`, `disk_faults` | apply them to the requests and to the files of a broker |
| `topic_rows`, `error_rows` | where a message has topics and partitions; answers of which some rows fail |
| `fetched_rows` | the same for Fetch, whose partitions may be in a session |
| `shadowed_files` | the seam to the files of a running broker |
| `execution` | a handler's answer, waited for |
| `arguments` | checks of the arguments |

A broker without rules has none of this in the path of its requests or of its files.
"""

from odradek.broker.testing.faults.blocking import BlockingFaults
from odradek.broker.testing.faults.faults import Faults
from odradek.broker.testing.faults.rule import Rule

__all__ = ["BlockingFaults", "Faults", "Rule"]
