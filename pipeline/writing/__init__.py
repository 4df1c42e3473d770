"""`format("broker")` as a sink: rows as records of topics.

| module | what |
|---|---|
| `sink` | the writers that Spark calls, for batches and streams |
| `partitioning` | the partition of each record |
| `batches` | rows gathered into record batches |
| `delivery` | batches sent to the leaders, once and in order |
"""
