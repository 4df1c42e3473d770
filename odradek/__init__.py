"""A message broker that Kafka's own clients cannot tell from Apache Kafka, its client, and its data pipeline.

| name | what |
|---|---|
| `Broker` | a broker in this process, on this event loop |
| `Producer`, `Consumer`, `Admin` | the asyncio client |
| `odradek.testing` | the plugin for pytest, and the handle that its fixture `kafka` returns |
| `odradek.broker`, `odradek.client`, `odradek.protocol`, `odradek.pipeline` | the packages, in folders of those names |

On Windows the import ends the process with a sentence that says so and exit status 1.

The four names are imported at their first use, so a program that only produces does not load the broker. The command
`odradek` is in `odradek.commands`. In the repository the last four are links to the folders beside this one.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if sys.platform == "win32":
    # Here, because every module is imported through this one; an ImportError of fcntl would say nothing.
    raise SystemExit(
        "Odradek does not run on Windows, because it needs file locks, signals and sockets as on Linux and macOS: "
        "use WSL2."
    )

if TYPE_CHECKING:
    from odradek.broker.broker import Broker
    from odradek.client.admin.admin import Admin
    from odradek.client.consumer.consumer import Consumer
    from odradek.client.producer.producer import Producer

__all__ = ["Admin", "Broker", "Consumer", "Producer"]

_MODULES = {
    "Admin": "odradek.client.admin.admin",
    "Broker": "odradek.broker.broker",
    "Consumer": "odradek.client.consumer.consumer",
    "Producer": "odradek.client.producer.producer",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
