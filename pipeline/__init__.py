"""Topics and log directories as Spark tables, through PySpark's data source API and Arrow, without a jar.

```python
from odradek.pipeline import session

spark = session()  # or register(spark), for an existing session
spark.read.format("broker").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders").load()
```

| module | what |
|---|---|
| `spark` | the Spark session, and settings of the Python processes that Spark starts |
| `options` | the options of `format("broker")` |
| `schema` | the columns of a record, in Spark's and in Arrow's types |
| `records` | record batches → Arrow columns, and back |
| `reading` | `format("broker")` as a source: batches and streams |
| `writing` | `format("broker")` as a sink |
| `klog` | `format("klog")`: the segment files of a log directory |
| `blocking_client` | the asyncio client, used from code that blocks |
| `worker_clients` | clients of a worker process, reused by its tasks |
| `jobs`, `taxi` | `python -m pipeline`, and its example |

The formats import `protocol`, `client` and, to read log directories, `odradek.broker.storage`.
"""

from odradek.pipeline.spark.spark_session import register, session

__all__ = ["register", "session"]
