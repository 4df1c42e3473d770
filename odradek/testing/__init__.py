"""Tests against a real broker: fixtures for pytest, and `Kafka`, what they return.

```python
def test_an_order_is_confirmed(kafka):
    orders = kafka.topic("orders")
    kafka.produce(orders, [b"three socks"])
    ...                                                      # the program under test, at kafka.bootstrap
    assert kafka.wait_for_records("confirmations", 1)[0].value == b"three socks"
```

| module | what |
|---|---|
| `plugin` | the fixtures, the options `--kafka` and `--kafka-exact-names`, the reports of failed tests |
| `session` | the cluster of a session, isolated from test to test |
| `kafka`, `aio` | `Kafka`, and the same methods for tests with an event loop |
| `clients`, `reading`, `sending` | what the methods are made of: clients of a test; records read; records sent |
| `topics`, `arrivals` | topics as tests create them; the records that a wait has read |
| `arguments` | the checks of what a test passes |
| `groups` | members and lag of groups, and the description of a group |
| `cluster`, `own_broker` | what a handle needs of a cluster; our broker |
| `other_cluster`, `exact_names` | a cluster of `--kafka`; one that only tests use, so that names of topics stay |
| `request_log` | the last requests of our broker, and a signal when one has been answered |
| `report` | the description of a cluster that a failed test shows |
| `clock`, `blocking` | the broker's clock as a test moves it; blocking methods beside an event loop |
| `errors` | the exceptions |

The three names are imported at their first use: importing the package, and the plugin, loads nothing of the broker.
This package is above the broker and the client; only tests import it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.testing.aio import AsyncKafka
    from odradek.testing.errors import KafkaTimeoutError
    from odradek.testing.kafka import Kafka

__all__ = ["AsyncKafka", "Kafka", "KafkaTimeoutError"]

_MODULES = {
    "AsyncKafka": "odradek.testing.aio",
    "Kafka": "odradek.testing.kafka",
    "KafkaTimeoutError": "odradek.testing.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
