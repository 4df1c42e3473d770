"""The broker: server → handlers → coordinator → replication → metadata → storage. ARCHITECTURE.md has all layers.

| module | what |
|---|---|
| `broker`, `run` | a broker as an object of a program; one run of it, which starts and stops every part |
| `development` | `odradek dev`: a broker with its data in memory |
| `startup` | the steps of a start: log directories, metadata store, creating the parts |
| `descriptor_budget` | the limits of open files and connections |
| `server`, `apis`, `handlers`, `request` | requests: sockets; the served APIs; one module an API; what handlers share |
| `maintenance` | periodic work on the logs: retention, compaction, flushes, checkpoints |
| `coordinator`, `replication` | consumer groups; the partitions on this broker |
| `interbroker` | this broker as a client of the others in its cluster |
| `metadata` | the state that the cluster agrees on: topics, brokers, configurations |
| `metadata_commands` | `odradek metadata`: the metadata store, seen and repaired by an operator |
| `workers` | several processes on one machine: their supervisor, and their partitions |
| `security`, `quotas` | who a client is, and what it may do; how much it may use |
| `config`, `metrics` | the properties; what is counted and how it is collected |
| `storage` | the log on disk |
| `explain` | the trace of requests, transitions and file operations, for `--explain` and tests |
| `inspection`, `testing` | offline commands for log directories; a broker in a test suite |
| `purgatory`, `tasks` | requests that wait for an event; periodic work |
| `waiting` | time limits: the timers of the event loop, or of a clock that tests move |
| `clock`, `randomness`, `structured_logging` | the seams for time and chance; the broker's log lines |
| `garbage_collection` | how long the collector of Python may stop a broker process |
| `health_check` | the check of a container whether its broker serves clients |
| `command_line` | what the commands share: options, errors |
| `build_info` | the version, and whether it is compiled |
"""
