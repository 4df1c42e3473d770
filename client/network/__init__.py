"""Connections to brokers, and the metadata of the cluster.

| module | what |
|---|---|
| `connection` | one connection to one broker |
| `transport` | the transports of connections, the only module that uses sockets; the errors of connecting |
| `tls` | the SSL context of the settings, and the errors of handshakes |
| `sasl`, `sasl_exchanges` | the authentication of a connection; the client's side of each mechanism |
| `api_versions` | the version of each API for one connection (ApiVersions) |
| `connections` | all connections of one client: at most one for each broker and purpose |
| `backoff` | growing pauses between attempts |
| `outcome` | waiting for work that callers share |
| `cluster_image` | the metadata as an immutable value: brokers, topics, leaders |
| `cluster` | keeps that image current, and opens connections by node id |
| `coordinator` | requests to the coordinator of a group or of a transactional id |
"""
