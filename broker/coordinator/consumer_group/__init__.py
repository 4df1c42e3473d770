"""Groups of the consumer protocol (KIP-848): the broker assigns partitions, members reconcile step by step.

| module | what |
|---|---|
| `group` | one group: passes events on, as `group_type.Group` says |
| `state` | the state of a group, rebuilt from its records; its epochs and invariants |
| `events`, `settings` | the events and timers of a group; its configuration |
| `heartbeat` | ConsumerGroupHeartbeat, the only request of a member |
| `checks` | the requests that are refused: heartbeats, commits, fetches of offsets |
| `classic_members`, `consumer_protocol` | members of the classic protocol in such a group; the bytes that they send |
| `departure` | members that leave or are fenced |
| `member_update` | the effects of a heartbeat or JoinGroup: group epoch, target assignment, reconciliation |
| `target_assignment` | the partitions that every member should have |
| `member`, `current_assignment` | the partitions that a member has; the next step towards its target |
| `subscription` | the topics that members read, and their hash |
| `regular_expressions`, `expressions` | patterns matched by RE2; when those of a group are matched again |
| `records` | a group as records of `__consumer_offsets` |
| `describe` | a group in ConsumerGroupDescribe |
"""
