"""Log directories as jobs read them: parts, offsets, batches.

| module | what |
|---|---|
| `log_offsets` | what the partitions of a log directory hold, and which part of it a job may read |
| `log_parts` | parts of a log directory, to be checked side by side: whole partitions, or some of the segments of |
| `shares` | sharing files out to tasks |
| `stored_batches` | the batches of a log directory as rows, made of their headers; of a few in each segment the |
"""
