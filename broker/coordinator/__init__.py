"""State kept on behalf of clients: groups of both protocols, with their committed offsets; transactions later.

| module | what |
|---|---|
| `group_coordinator`, `partition_state` | the coordinator of groups; the groups of one partition |
| `group_type`, `group_types` | what any type of group must offer; the types that there are |
| `consumer_group`, `assignors` | groups of the consumer protocol (KIP-848), and who gets which partitions in them |
| `migration` | live groups that go from one protocol to the other |
| `offsets` | committed offsets, and what is asked of them |
| `records` | `__consumer_offsets`: the topic, its records, a classic group in them |
| `classic_group` | groups of the classic protocol |
| `runtime` | leadership, loading, events, records and timers |
"""
