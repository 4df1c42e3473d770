"""State that the broker keeps for clients: groups of both protocols with their committed offsets.

| module | what |
|---|---|
| `group_coordinator` | the coordinator of groups: its topic, and what concerns all groups of this broker |
| `group_shard` | the groups and offsets of one partition of `__consumer_offsets` |
| `group_type`, `group_types` | the interface of a group of any type; the types that there are |
| `classic_group` | groups of the classic protocol |
| `consumer_group`, `assignors` | groups of the consumer protocol (KIP-848), and the assignment of partitions |
| `sessions` | which members live, when a test moves the clock |
| `migration` | groups that change their protocol while they have members |
| `offsets` | committed offsets, and the requests that change them |
| `transactions` | transactional ids, and the markers that end transactions |
| `runtime` | leadership, loading, events, records, timers: the part that every coordinator needs |
"""
