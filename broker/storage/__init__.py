"""The log on disk: Kafka's directory, byte for byte. Synchronous, files only.

| module | what |
|---|---|
| `log_dirs`, `log_dir` | the directories of a broker; one of them, with the logs in it |
| `log`, `log_reader`, `log_opening` | one partition's log: changing it, asking it, opening it |
| `segmented_log`, `segments`, `segment`, `log_file` | a log as segments; a segment, and its `.log` file |
| `segment_indexes`, `offset_index`, `time_index`, `transaction_index`, `index_file` | the indexes of a segment |
| `validation`, `batch_refusals`, `refusals`, `append_info`, `follower_batches` | appends: checks and results |
| `producer_state`, `producer_entry`, `partition_producers` | idempotent producers and their transactions |
| `producer_snapshot`, `producer_snapshots` | the same on disk |
| `producer_replay`, `producer_history` | the same learnt again from the log |
| `leader_epochs`, `checkpoints`, `clean_shutdown`, `meta_properties`, `partition_metadata`, `text_file` | small files |
| `batch_scan`, `log_slice`, `known_positions`, `timestamp_lookup` | finding and reading batches |
| `durability`, `recovery`, `leftovers` | syncing; what is done after an unclean stop |
| `retention`, `compaction`, `cleaning_state`, `deletions` | what goes, in turns, and when its files go |
| `files`, `descriptors`, `retrying_files` | the seam to the disk; open files, which make room for others |
| `disk_failure`, `disk_errors` | a disk that fails; errors that are not the disk's |
| `names`, `log_config`, `resources` | file names; a topic's properties; what logs share |
| `stored_log_dir`, `stored_partition`, `committed_offsets`, `kraft_topics`, `read_only_files` | without a broker |

`open_log_dir` is the way in for whoever wants to look at such a directory: see `stored_log_dir`. A broker goes by
`log_dir`, and does not import what it does not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.broker.storage.stored_log_dir import StoredLogDir, open_log_dir
    from odradek.broker.storage.stored_partition import StoredPartition

__all__ = ["StoredLogDir", "StoredPartition", "open_log_dir"]

_MODULES = {"StoredPartition": "odradek.broker.storage.stored_partition"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES.get(name, "odradek.broker.storage.stored_log_dir")), name)
    return value
