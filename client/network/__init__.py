"""Connections to brokers, and the metadata of the cluster.

| module | what |
|---|---|
| `connection` | one TCP connection to one broker; the only module of the client that uses sockets |
| `api_versions` | the version of each API for one connection (ApiVersions) |
| `connections` | all connections of one client: at most one for each broker and purpose |
| `backoff` | growing pauses between attempts |
| `cluster_image` | the metadata as an immutable value: brokers, topics, leaders |
| `cluster` | keeps that image current, and opens connections by node id |
| `coordinator` | requests to the coordinator of a group or of a transactional id |
"""
