"""The metadata store: its interface and its implementations.

| module | what |
|---|---|
| `store` | the interface: a small, strictly serializable key-value store with history, like etcd |
| `opening` | the choice of a store by the configuration |
| `embedded` | the common part of the embedded stores: keys in memory, transactions one at a time, sessions |
| `history` | the latest changes of an embedded store, and the watches over them |
| `sqlite` | the store of a single node: SQLite in one file of the log directory |
| `etcd` | the store of a cluster: etcd |
| `shared` | the store of several processes on one machine: one owns it, and serves it on a Unix socket |
| `memory` | the store of tests and simulations, in memory, with leases that expire |
| `commit` | transactions that are repeated until their outcome is definite |
"""
