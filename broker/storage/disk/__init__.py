"""Access to the disk: files, descriptors, failures, deferred deletion.

| module | what |
|---|---|
| `deletions` | files that were taken out of their logs and wait to be removed |
| `descriptors` | a bounded cache of open files, so that ten thousand idle partitions hold no descriptor |
| `disk_errors` | errors of the operating system that say nothing against the disk |
| `disk_failure` | a failed log directory stays failed: every request to any of its logs is refused until the |
| `files` | the seam to the disk: everything that the log asks of the operating system, and nothing else does |
| `read_only_files` | a disk that is never changed: what would be written to it stays in memory, and is read from |
| `retrying_files` | a `Files` that makes room when no descriptor is left: open files that nobody uses are closed |
"""
