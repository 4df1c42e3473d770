"""Connections to brokers, and the client's view of the cluster.

| module | what |
|---|---|
| `api_versions` | which version of each API to speak with one broker: agreed on once per connection, by |
| `backoff` | pauses between attempts: exponential, with jitter, so that the clients of a returning broker do not |
| `cluster` | the cluster as one client sees it: who leads which partition, and how to reach them |
| `connection` | one TCP connection to one broker, and the only module of the client that knows of sockets |
| `connections` | the connections of one client: at most one to a node and purpose, made when first asked for and kept |
| `cluster_image` | what the client knows of the cluster: an immutable image, and how an answer to Metadata changes it |
"""
