"""Snapshots of a running embedded broker, which it can return to as often as a test needs, and of log directories.

```
snapshot   writer threads stalled ─► each log: links, a copy of the active segment's used bytes ─► keys of the metadata
restore    connections closed, requests ended ─► coordinators unloaded, appends ended
           ─► each log: as it was │ cut at its old end │ put back from the snapshot's files
           ─► one transaction of the metadata ─► coordinators loaded ─► connections served again
```

| module | what |
|---|---|
| `snapshots` | `Snapshots` and `Snapshot`: begin here |
| `partition_copy` | the copy of one partition's log, and its return |
| `metadata_rewrite` | the transaction that makes the metadata those of a snapshot |
| `writer_stall` | no append runs while the state is read or replaced |
| `snapshot_root` | the directory of the copies, on the file system of the log directory |
| `file_copies` | links and copies of files |
| `log_dir_copy` | a log directory made from a snapshot, for a broker that is stopped |
| `offline`, `command` | `odradek snapshot save` and `load` |

Both run on the broker's event loop, which they occupy while they work with files: no other request runs then.
"""

from odradek.broker.testing.snapshots.snapshots import Snapshot, Snapshots

__all__ = ["Snapshot", "Snapshots"]
