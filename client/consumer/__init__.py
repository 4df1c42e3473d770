"""The consumer: fetching ahead, positions, and returning the records.

```
Consumer.poll ◄─ FetchCollector ◄─ SubscriptionState ◄─ Fetcher ◄─ broker
                                    (CompletedFetch)       └─ FetchPositions, PositionValidator: where to fetch
```

| module | what |
|---|---|
| `consumer` | `Consumer`: what the user calls |
| `subscription_state` | the assigned partitions, with the position and the buffered records of each |
| `fetcher` | fetches ahead of the user, one request at a time to each broker |
| `fetch_request` | one Fetch request, and the rows of its response that are still wanted |
| `fetch_session` | the incremental fetch session with one broker (KIP-227) |
| `completed_fetch` | the records that one response has for one partition: filtered and decoded |
| `fetch_collector` | returns the fetched records to the user, partition by partition |
| `fetch_positions` | the first position of a partition: the committed offset, or as `auto_offset_reset` says |
| `auto_offset_reset` | the policies of `auto_offset_reset` |
| `position_validation` | comparison of the position with the log of a new leader (KIP-320) |
| `offset_lookup` | offsets by time, beginnings and ends of partitions (ListOffsets) |
| `missing_topics` | warnings about topics and partitions that do not exist |
"""
