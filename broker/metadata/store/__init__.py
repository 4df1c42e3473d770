"""The metadata store: the seam, and the embedded stores behind it.

| module | what |
|---|---|
| `commit` | transactions with a definite outcome, whatever happens between here and the store |
| `embedded` | what the embedded stores share: the current keys in memory, transactions one at a time, history |
| `history` | the latest changes of an embedded store, and the watches that follow them |
| `memory` | the metadata store in memory: for tests and simulations, with leases that run out on the loop's clock |
| `sqlite` | the metadata store of a single node: SQLite in one file of the log directory |
| `store` | the metadata store seam: a small, strictly serializable key-value store with history, as etcd is one |
"""
