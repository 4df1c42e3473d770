"""Topics and log directories as Spark tables, through PySpark's own data source API and Arrow, without a jar.

```python
from odradek.pipeline import session

spark = session()  # or register(spark), for a session that is there already
spark.read.format("broker").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders").load()
```

| module | what |
|---|---|
| `session` | a Spark session that knows the formats |
| `options`, `bounds` | the options of Spark's connector for Kafka, read and refused |
| `offsets`, `ranges` | on the driver: which offsets are read, and in which tasks |
| `source`, `stream` | `format("broker")`: a batch, a stream |
| `klog`, `klog_options`, `klog_plan`, `log_filters` | `format("klog")`: from options and filters to tasks |
| `segments`, `segment_ranges`, `segment_reader` | log directories: what is complete, in which bytes, reading it |
| `wire`, `partition_reader` | in a task: fetch ahead, decode, go on where records have gone |
| `data_loss` | `failOnDataLoss`: what becomes of a query whose records have gone |
| `event_loop` | the client's event loop, under code that blocks |
| `sink`, `partitioning`, `batches`, `delivery` | writing: rows, partitions, batches, each to its leader once |
| `worker_process`, `worker_interpreter`, `worker_sockets`, `session_directory` | the processes that Spark works in |
| `varints`, `arrow_values` | many varints at a time; between numpy and Arrow without pandas |
| `schema` | the columns of a record, as Spark and as Arrow name them |
| `whole_batches` | the batches in a buffer, and their headers |
| `records`, `record_starts`, `record_fields`, `columns` | record batches → Arrow columns |
| `damage`, `aborted`, `old_messages` | no records; what `read_committed` leaves out; before Kafka 0.11 |
| `encode` | Arrow columns → record batches |
| `jobs`, `taxi` | `python -m pipeline`, and its example |

What reads and writes here knows `protocol`, `client` and the read-only opener of `odradek.broker.storage`.
"""

from odradek.pipeline.session import register, session
from odradek.pipeline.worker_process import hang_up_quietly, spare_imports

spare_imports()
hang_up_quietly()

__all__ = ["register", "session"]
