"""Log directories, as jobs read them.

| module | what |
|---|---|
| `log_offsets` | the offsets of the partitions that a job reads, and the ids of their topics |
| `continuation` | the next offsets of an export, and what does not fit those of its last run |
| `log_parts` | parts of partitions that `verify` checks in parallel |
| `stored_batches` | batches as rows, for `stats` |
| `task_shares` | files divided among Spark's tasks |
"""
