"""The session and the Python processes that Spark runs.

| module | what |
|---|---|
| `spark_session` | a session with the pipeline's formats; checks that Java and the packages are installed |
| `stream_lag` | how far a stream is behind its topics, from its progress |
| `stream_reports` | log lines about streams: lag, and errors in one line |
| `error_cause` | the line of an error of Spark that names the cause |
| `project_archive` | send the project to workers that lack it |
| `worker_daemon` | PySpark's daemon of workers, which ends a worker quietly when Java has closed its socket |
| `stream_process` | PySpark's process for the offsets of a stream, which connects to Java in time on a busy machine |
| `error_lines` | the errors of Spark's own classes in one line each |
| `local_workers` | Python workers on the driver's machine: their interpreter and their Unix sockets |
| `garbage_collection` | exclude modules from garbage collection in Spark's Python processes |
"""
