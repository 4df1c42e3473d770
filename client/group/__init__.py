"""Consumer groups, from the side of a member.

```
Consumer ─► Group ─► Rebalancer (one of the two protocols) ─► Member ─► Coordinator ─► broker
              └────────┴─► OwnedPartitions ─► AutoCommit ─► CommittedOffsets ──┘
```

| module | what |
|---|---|
| `group` | `Group`: joining, heartbeats and leaving, with either protocol |
| `member_states` | the states of a member, and the table of what leads from one to another |
| `rebalancer` | the interface between `group` and the two protocols |
| `classic_rebalancer`, `classic_member` | the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup |
| `consumer_rebalancer`, `consumer_member` | the newer protocol: ConsumerGroupHeartbeat (KIP-848) |
| `owned_partitions` | taking partitions over and revoking them |
| `rebalance_listener` | the user's callbacks for that |
| `auto_commit` | automatic commits |
| `committed_offsets` | requests to commit offsets and to read them back |
| `assignors` | the assignors of classic groups: pure functions |
| `consumer_protocol` | the bytes that members of a classic group exchange |
"""
