"""The steps of a start that have rules of their own. `run` takes them.

| module | what |
|---|---|
| `machine` | what a broker uses of its machine: the seams, which a simulation replaces |
| `surroundings` | the configuration and the seams of a broker, the same in each of its runs |
| `log_dirs` | opening the log directories, with recovery |
| `worker_directories` | the refusal of a start while partitions are not where `num.workers` has them |
| `metadata_store` | opening the metadata store; the cluster in a shared one |
| `parts` | every part between the logs and the sockets, created and connected |
| `security` | how clients authenticate |
| `authorizer` | the authorizer, which follows the access rules of the metadata |
| `clock_follower` | what must not age when a test moves the clock |
| `siblings` | the other workers of the machine, for the status pages |
| `status_pages` | the pages of the HTTP port |
| `embedded_config` | the configuration of a broker in another program's process |
| `temporary_log_dir` | its log directory, if it is given none |
"""
