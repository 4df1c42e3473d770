"""The session and the Python processes that Spark runs.

| module | what |
|---|---|
| `spark_session` | a session with the pipeline's formats; checks that Java and the packages are installed |
| `local_workers` | Python workers on the driver's machine: their interpreter and their Unix sockets |
| `garbage_collection` | exclude modules from garbage collection in Spark's Python processes |
"""
