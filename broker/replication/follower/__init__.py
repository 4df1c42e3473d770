"""The follower: fetches from the leaders of this broker's other replicas, and appends what they have.

```
image ─► fetchers ─► fetcher of a leader ─┬─ session: one Fetch for all partitions ─► connection ─► leader
                                          └─ replica of each partition: append, truncate, high watermark ◄─ row
```

| module | what |
|---|---|
| `fetchers` | the fetchers of a broker: which partition is fetched from whom |
| `fetcher` | one loop for one leader: request, response, back-off |
| `fetch_requests` | the follower's side of a fetch session (KIP-227) |
| `followed_replica` | one partition: what a row of a response does to its log |
| `truncation` | the offset at which a log diverges from its leader's (KIP-101, KIP-279, KIP-595) |
| `leader_connection` | the seam to the network |
| `settings` | the properties of replication, with Kafka's names and defaults |

A fetch offset is a promise: everything below it is in this log, and synced if flush.messages demands it. So the next
request is sent only after the last response has been appended.
"""
