"""The log on disk: Kafka's directory, byte for byte. Synchronous, files only.

| module | what |
|---|---|
| `log_dirs`, `log_dir` | the directories of a broker; one of them, with the logs in it |
| `log`, `log_reader` | one partition's log: the methods that change it, and those that read it |
| `log_state` | a log at one moment: its bounds and files, to copy it or to truncate it to that state |
| `segmented_log`, `segments` | the segments of a log: appended to, read, truncated, swapped; their registry |
| `segment`, `log_file` | one segment, and its `.log` file |
| `batch_scan`, `log_slice` | walks over batches; a range of bytes to send |
| `retirement` | taking deleted and stray logs out of their directory |
| `durability` | the order of syncs, and the recovery point |
| `retention`, `cleanable` | decisions: the segments that retention deletes, the log that compaction takes |
| `cleaning_state` | mutual exclusion of compaction, retention and truncation of a log's old segments |
| `names`, `log_config`, `resources` | file names; a topic's properties; objects that the logs share |
| `append` | the checks of batches before an append, and its result |
| `producers` | idempotent producers and their snapshots |
| `index` | the indexes of a segment, and look-ups through them |
| `opening` | opening and recovering a log |
| `checkpoints` | the small files of a log directory |
| `disk` | files, descriptors, failures, deferred deletion |
| `compaction` | cleanup.policy=compact |
| `offline` | log directories that no broker serves |

`open_log_dir` opens a directory without a broker: see `offline.stored_log_dir`. A broker uses `log_dir`, and does not
import `offline` as a whole: hence the lazy names here.
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
