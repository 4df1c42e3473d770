"""State kept on behalf of clients: groups of both protocols, with their committed offsets; transactions later.

| module | what |
|---|---|
| `groups` | the coordinator: which partitions of `__consumer_offsets` are led here; begin here |
| `shard`, `partition_state`, `loading` | one such partition at work; what it holds; reading it back |
| `group_type`, `group_types` | what any type of group must offer; the types that there are |
| `group`, `group_state`, `group_join`, `group_rebalance`, `members`, `classic_events` | groups of the classic type |
| `consumer_group`, `assignors` | groups of the consumer protocol (KIP-848), and who gets which partitions in them |
| `migration` | live groups that go from one protocol to the other |
| `offsets`, `offset_events` | committed offsets, and what is asked of them |
| `internal_topic`, `records`, `stored_group` | `__consumer_offsets`: the topic, its records, a classic group in them |
| `timers` | the timers of a group |
"""
