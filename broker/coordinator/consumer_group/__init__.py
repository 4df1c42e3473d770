"""Groups of the consumer protocol (KIP-848): the coordinator assigns, members reconcile step by step.

| module | what |
|---|---|
| `group` | one group, as the coordinator sees it |
| `state` | what a group is made of, rebuilt from its records; the epochs and the invariants |
| `events`, `settings` | what happens to a group; what its configuration says |
| `heartbeat`, `checks` | the one request of a member, and what it is refused for |
| `classic_members`, `consumer_protocol` | members of the classic protocol in such a group, and how they say things |
| `departure`, `timers` | leaving, being fenced, time that runs out |
| `member_update` | what follows from a sign of life: epoch, target, reconciliation |
| `target_assignment` | what everybody should have |
| `member`, `current_assignment` | what a member has, and the next step towards what it should have |
| `subscription`, `expressions`, `regular_expressions` | which topics are read: names, and patterns in linear time |
| `offset_checks` | whose commits count |
| `records` | the group as records of `__consumer_offsets` |
| `describe` | the group as admin clients see it |
"""
