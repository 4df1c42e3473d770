"""`format("klog")`: the segment files of a log directory as a table.

| module | what |
|---|---|
| `source` | the data source that Spark calls, and its reader |
| `options` | the options of the format |
| `filters` | filters of a query on topic, partition, offset and timestamp, applied before reading |
| `plan` | the tasks of a query: pieces of segment files |
| `segments` | log directories, opened read-only while a broker may write them |
| `segment_ranges` | the byte ranges of segment files that hold a range of offsets |
| `segment_reader` | a range of a segment file, read some megabytes at a time |
"""
