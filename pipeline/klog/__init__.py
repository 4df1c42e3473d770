"""`format("klog")`: the segment files of a log directory as a table.

| module | what |
|---|---|
| `source` | the data source that Spark calls, and its reader |
| `options` | the options of the format |
| `plan` | the work of a query: pieces of segment files |
| `tasks` | the division of pieces into tasks |
| `segments` | log directories, opened read-only while a broker may write them |
| `segment_ranges` | the byte ranges of segment files that hold a range of offsets |
| `piece_reader` | the records of a task's pieces; damage and missing offsets according to the options |
| `joint_decoding` | small chunks of many partitions, decoded at once |
| `segment_reader` | a range of a segment file, read some megabytes at a time |
| `chunks` | whole batches from a file, and parts of them |
| `index_entries` | the offset index of a segment, while a part of the segment is read |
| `offset_check` | the check that the offsets of batches follow each other |
"""
