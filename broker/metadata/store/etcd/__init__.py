"""The metadata store of a cluster: etcd, over gRPC, without generated code.

Only this package uses grpcio, which the extra `cluster` installs; `opening` imports it only if etcd is configured.
grpcio serves one event loop of a process.

| module | what |
|---|---|
| `store` | `EtcdStore`: ranges, transactions, and what belongs to them: watches, sessions |
| `options` | the endpoints, credentials and times of a store |
| `watch` | one watch: a stream that is resumed at the last whole revision; requests of progress |
| `revisions` | the batches of a watch: the responses of etcd, split into whole revisions |
| `session` | a lease that is kept alive, and its deadline |
| `client` | calls: each to one endpoint with a time limit, then to the next; what was certainly not applied |
| `endpoints` | one channel for each endpoint, and the one in use |
| `authentication` | the token of a user with a password |
| `errors` | the answers of etcd as errors of a store |
| `messages` | the messages of etcd's API that are used |
| `wire` | the encoding of protobuf messages |
"""
