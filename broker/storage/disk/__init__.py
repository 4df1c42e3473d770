"""Access to the disk: files, descriptors, failures, deferred deletion.

| module | what |
|---|---|
| `files` | the seam to the operating system's files; its real sides, `OsFiles` and `UnsyncedFiles` |
| `read_only_files` | a `Files` that keeps every change in memory |
| `retrying_files` | a `Files` that closes unused files and retries when no descriptor is left |
| `descriptors` | a bounded cache of open files |
| `disk_errors` | the kinds of errors: transient ones, and those of a name |
| `disk_failure` | the state of a log directory that has failed |
| `deletions` | files that wait for their removal |
"""
