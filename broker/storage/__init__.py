"""The log on disk: Kafka's directory, byte for byte. Synchronous, files only.

`open_log_dir` is the way in for whoever wants to look at such a directory: see `stored_log_dir`. A broker goes by
`log_dir`, and does not import what it does not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.storage.stored_log_dir import StoredLogDir, open_log_dir
    from broker.storage.stored_partition import StoredPartition

__all__ = ["StoredLogDir", "StoredPartition", "open_log_dir"]

_MODULES = {"StoredPartition": "broker.storage.stored_partition"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES.get(name, "broker.storage.stored_log_dir")), name)
    return value
