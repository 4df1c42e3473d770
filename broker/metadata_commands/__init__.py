"""`odradek metadata …`, `odradek users …`: the metadata store and the log directories of one broker, for its operator.

| module | what |
|---|---|
| `command` | the command line, the exit status |
| `opened_store` | the store of a configuration: etcd, or the file of a broker alone |
| `directories` | the log directories of a configuration: identity, lock, logs without a topic |
| `show` | cluster, brokers, topics, and whether a broker with this configuration may join |
| `dump` | every key with its value |
| `create_cluster` | the record of the cluster, into a store that has lost it |
| `accept_backup` | a store that is older than the log directories: what it lacks, and its acceptance |
| `users` | `odradek users`: SCRAM users, while the broker is stopped |

`create_cluster` and `accept_backup` change something only with `--yes`, only while the broker is stopped, and delete
nothing.
"""
