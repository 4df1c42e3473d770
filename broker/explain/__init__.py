"""The trace of a broker: what its clients request, what it answers, and what that changes, for tests and for learners.

| module | what |
|---|---|
| `trace` | `Trace`: installs the hooks, and keeps the last events |
| `events` | the types of the events |
| `requests` | the hook around the handlers: requests and answers |
| `brief` | the same, cheaper: a line for each request |
| `transitions` | the hook around the coordinators: states of groups and of transactional ids |
| `file_operations` | the hook around the files of the log directories |
| `file_runs` | shortens long runs of file operations |
| `exchanges`, `calls`, `subjects` | a request from its start to its end, and what it is about |
| `copying`, `record_copying` | bounded copies of messages and of record batches |
| `shown` | values as short texts |
| `secrets` | which fields are hidden |
| `text` | events as lines |
| `repetitions` | leaves out what an idle client repeats |
| `printer`, `option`, `apis` | `--explain`: prints events as they happen; names of APIs |

Without an installed trace the broker runs none of this.
"""

from odradek.broker.explain.trace import Trace

__all__ = ["Trace"]
