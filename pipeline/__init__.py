"""Topics and log directories as Spark tables, through PySpark's own data source API and Arrow, without a jar.

```python
from odradek.pipeline import session

spark = session()  # or register(spark), for a session that is there already
spark.read.format("broker").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders").load()
```

| module | what |
|---|---|
| `session` | a Spark session that knows the formats |
| `klog` | `format("klog")`: from options and filters to tasks |
| `event_loop` | the client's event loop, under code that blocks |
| `schema` | the columns of a record, as Spark and as Arrow name them |
| `records` | record batches → Arrow columns |
| `jobs`, `taxi` | `python -m pipeline`, and its example |
| `reading` | topics as tables and streams |
| `spark` | the processes that Spark works in |
| `writing` | rows as records of topics |

What reads and writes here knows `protocol`, `client` and the read-only opener of `odradek.broker.storage`.
"""

from odradek.pipeline.spark.spark_session import register, session

__all__ = ["register", "session"]
