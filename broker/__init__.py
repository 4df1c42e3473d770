"""The broker: server → handlers → replication and coordinators → metadata → storage.

| module | what |
|---|---|
| `broker`, `opening` | builds every part, and starts and stops them; opens the log directories |
| `descriptor_budget` | how many files and connections may be open |
| `server`, `handlers` | requests: from and to bytes; what each API does |
| `replication`, `coordinator` | the partitions on this broker; consumer groups |
| `metadata` | what the cluster has agreed on |
| `storage` | the log on disk |
| `config`, `metrics` | properties; what can be watched |
| `tasks`, `purgatory`, `time_slices` | periodic work; requests that wait for something to happen, or take long |
| `clock`, `randomness` | the seams for time and for chance |
| `structured_logging`, `log_levels` | the broker's own log lines |
| `properties`, `build` | Java's `.properties` files; the version, and whether it is compiled |
| `inspection`, `testing` | `inspect` and `verify`; a broker in a test suite |
| `maintenance` | periodic work on the logs |
| `request` | what a handler gets with a request |
"""
