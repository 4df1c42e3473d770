"""Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

| module | what |
|---|---|
| `events` | what clients of the classic protocol ask of a group: the four requests as events |
| `group` | a consumer group of the classic protocol: a pure state machine, told of events and the time, that |
| `join` | how members enter a classic group, or enter it again (`group` draws what that means in each state) |
| `members` | the members of a classic group: who is in it, who leads, which protocols all support, whom the group |
| `rebalance` | how a classic group rebalances: it waits for its members, begins a generation, and tells them |
| `state` | what a classic group is between two events: its state, members and generation; what is stored of it |
| `stored_group` | a classic group as it is stored in `__consumer_offsets` (record type 2), and what its members |
"""
