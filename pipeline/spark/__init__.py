"""The processes, sockets and directories that Spark works with.

| module | what |
|---|---|
| `session_directory` | the directory of this process for what its Spark needs on this machine: a script, and |
| `worker_interpreter` | the interpreter that Spark starts on this machine, with the installed PySpark instead of |
| `worker_process` | the Python processes in which Spark plans queries and runs tasks: what spares them work, and |
| `worker_sockets` | unix sockets between Spark's Java and the Python workers on this machine, in place of TCP |
"""
