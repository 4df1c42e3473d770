"""Topics and log directories as Spark tables, through PySpark's own data source API and Arrow, without a jar.

| module | what |
|---|---|
| `schema` | the columns of a record, as Spark and as Arrow name them |
| `records` | record batches → Arrow columns |
| `encode` | Arrow columns → record batches |

What reads and writes here knows `protocol`, `client` and the read-only opener of `broker.storage`.
"""
