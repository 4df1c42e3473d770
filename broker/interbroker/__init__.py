"""This broker as a client of the other brokers of its cluster. Imported only if there may be others.

| module | what |
|---|---|
| `connections` | the connections, one for each broker and purpose, at the listener that brokers use among themselves |
| `security` | TLS and SASL of these connections, from the properties of that listener |
| `leader_connection` | the connection of a fetcher, which replicates from a leader |
| `transactions` | the requests of transactions: markers, partitions |
| `row_batches` | rows of many callers in few requests |
| `replication` | the fetchers and the changes of in-sync sets of this broker: begin here |

It is the only part of the broker that uses the client: its connections negotiate versions, match responses to requests
and time out in the same way.
"""
