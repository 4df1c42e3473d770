"""The runtime of a coordinator: leadership of an internal topic, loading, events, records, timers.

| module | what |
|---|---|
| `internal_topic` | `__consumer_offsets`: which partition a group's records are in, how the topic comes into |
| `loading` | reading a partition of `__consumer_offsets` back into memory, on a thread, when this broker begins |
| `shard` | the groups of one partition of `__consumer_offsets` at work: events in, records into the log, replies |
| `timers` | the timers of one group on the event loop, made for being moved far more often than they expire |
"""
