"""Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

| module | what |
|---|---|
| `group` | one group: handles events, as `group_type.Group` says |
| `state_table` | the states, which follows which, the response to each request in each of them |
| `state` | members, generation and protocol between two events; checks; records |
| `join` | JoinGroup: how members enter |
| `rebalance` | waits for members to join, begins a generation |
| `members`, `member_effects` | the registry of members; responses, session and removal of one of them |
| `events` | the four requests as events |
| `stored_group` | the record of a group in `__consumer_offsets` |
"""
