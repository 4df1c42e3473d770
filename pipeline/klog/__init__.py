"""`format("klog")`: the segment files of a log directory as a table.

| module | what |
|---|---|
| `filters` | what a query's filters say about topic, partition, offset and timestamp, before anything is read |
| `options` | the options of `format("klog")`: those of the connector that make sense of files, and two of Spark's |
| `plan` | from options and filters to the pieces of files that tasks read: what the driver does for `format("klog")` |
| `segment_ranges` | which bytes of which files hold a range of offsets, and how they are shared out between tasks |
| `segment_reader` | reading a piece of a segment file, some megabytes at a time, while its broker may rename it |
| `segments` | log directories as somebody reads them who is no broker, while a broker may be writing them |
| `source` | `format("klog")`: the segment files of a log directory as a Spark table, read in parallel and without |
"""
