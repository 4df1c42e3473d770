"""Consumer groups, as a member sees them.

| module | what |
|---|---|
| `group` | the life of a subscribed consumer: joining, giving up and taking over partitions, committing |
| `classic_group`, `classic_member` | by the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup |
| `consumer_group`, `consumer_member` | by the newer one: ConsumerGroupHeartbeat (KIP-848) |
| `assignors`, `sticky`, `subscriber` | who gets which partitions; pure functions that the leader of a group computes |
| `consumer_protocol`, `sticky_data` | what members tell each other through the broker, as bytes |
| `coordinator` | the broker that coordinates a group |
| `committed_offsets` | committing offsets and reading them back |
| `rebalance_listener` | what the user is told of rebalances |
"""
