"""The log on disk: Kafka's directory, byte for byte. Synchronous, files only.

| module | what |
|---|---|
| `log_dirs`, `log_dir` | the directories of a broker; one of them, with the logs in it |
| `log`, `log_reader` | one partition's log: changing it, asking it, opening it |
| `segmented_log`, `segments`, `segment`, `log_file` | a log as segments; a segment, and its `.log` file |
| `checkpoints` | small files |
| `batch_scan`, `log_slice` | finding and reading batches |
| `durability` | syncing; what is done after an unclean stop |
| `retention`, `cleanable` | decisions: which segments have expired, which log is compacted next |
| `compaction`, `cleaning_state` | what goes, in turns, and when its files go |
| `names`, `log_config`, `resources` | file names; a topic's properties; what logs share |
| `append` | checks before an append, and its result |
| `disk` | files, descriptors, failures, deletion |
| `index` | the indexes of a segment, and lookups through them |
| `offline` | log directories that nobody serves |
| `opening` | opening and recovering a log |
| `producers` | idempotent producers and their snapshots |

`open_log_dir` is the way in for whoever wants to look at such a directory: see `stored_log_dir`. A broker goes by
`log_dir`, and does not import what it does not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.broker.storage.offline.stored_log_dir import StoredLogDir, open_log_dir
    from odradek.broker.storage.offline.stored_partition import StoredPartition

__all__ = ["StoredLogDir", "StoredPartition", "open_log_dir"]

_MODULES = {"StoredPartition": "odradek.broker.storage.offline.stored_partition"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(
        import_module(_MODULES.get(name, "odradek.broker.storage.offline.stored_log_dir")), name
    )
    return value
