"""`format("broker")` as a source: topics as batch tables and as streams.

| module | what |
|---|---|
| `source` | the data source that Spark calls, and the reader of a batch |
| `stream` | the reader of a stream: the offsets of each micro-batch |
| `offsets` | partitions and offsets, requested from the brokers by the driver |
| `stream_offsets` | the offsets of a stream in its checkpoint |
| `ranges` | ranges of offsets, divided into tasks |
| `grouping` | small ranges in one task |
| `partition_reader` | the work of a task: ranges as Arrow batches |
| `fetch_client` | Fetch requests to the leader of one partition, one request ahead of the reader |
| `data_loss` | the option `failOnDataLoss`: an error or a warning |
"""
