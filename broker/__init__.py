"""The broker: server → handlers → replication and coordinators → metadata → storage.

| module | what |
|---|---|
| `broker`, `log_dir_startup` | builds every part, and starts and stops them; opens the log directories |
| `descriptor_budget` | how many files and connections may be open |
| `server`, `apis`, `handlers` | requests: from and to bytes; the served APIs; what each API does |
| `replication`, `coordinator` | the partitions on this broker; consumer groups |
| `metadata` | what the cluster has agreed on |
| `storage` | the log on disk |
| `config`, `metrics` | properties; what can be watched |
| `tasks`, `purgatory` | periodic work; requests that wait for something to happen |
| `clock`, `randomness` | the seams for time and for chance |
| `structured_logging` | the broker's own log lines |
| `build_info` | the version, and whether it is compiled |
| `inspection`, `testing` | `inspect` and `verify`; a broker in a test suite |
| `maintenance` | periodic work on the logs |
| `request` | what a handler gets with a request |
"""
