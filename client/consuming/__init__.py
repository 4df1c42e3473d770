"""The parts of a consumer: fetching ahead, positions, and the order of records.

| module | what |
|---|---|
| `fetch_request` | a request to Fetch for partitions of one broker, and how its answer is read back |
| `fetch_session` | a fetch session with one broker: what need not be said again in the next request to Fetch |
| `fetched` | the records that one answer to Fetch brought for one partition: read, filtered and decoded as they |
| `fetcher` | fetching ahead of the user: one long poll at a time to each broker that leads assigned partitions |
| `missing_topics` | warn of topics and partitions that a consumer is to read and that do not exist: once, until |
| `offset_lookup` | asking leaders where partitions begin and end, and which offset goes with a time (ListOffsets) |
| `positions` | finding positions for partitions that have none: what the group committed, or where |
| `reset_policy` | `auto_offset_reset`: where to go on without a position, or when it is out of range |
| `subscription` | what a consumer reads: its assigned partitions and where it is in each |
| `truncation` | whether a new leader has the records that were read from another (KIP-320) |
| `turns` | hands out what the fetcher has brought: the partitions take turns, and what a group needs is done in |
"""
