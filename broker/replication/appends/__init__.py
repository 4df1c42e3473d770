"""Appends: their order in one log, and the threads that keep disk work off the event loop.

| module | what |
|---|---|
| `log_appender` | the order of the appends to one log |
| `disk_threads`, `writer_thread` | the threads for disk work of any kind; one that writes large batches |
"""
