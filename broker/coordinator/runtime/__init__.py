"""The runtime of coordinators: state that lives in an internal topic, served by the leader of each partition.

| module | what |
|---|---|
| `runtime` | `CoordinatorRuntime`: leadership, loading, unloading; finds the partition of a key |
| `loaded_partition` | one loaded partition: handles events, appends records, sends replies |
| `coordinator_shard` | `CoordinatorShard`: the interface that a coordinator implements, the state of one partition |
| `events` | what goes into a state machine and comes out of it: events, effects, pending replies, timers |
| `records` | records of internal topics: typed in memory, bytes in the log |
| `internal_topic` | `InternalTopic`: name, properties and record types of the topic; the partition of a key |
| `partition_writer` | appends to one partition, acknowledged by all in-sync replicas |
| `loading` | reads a partition back into memory, on a thread |
| `timers` | the timers of one key |

A coordinator keeps state by key (a group id, a transactional id). All of a key's state is in one partition of one
internal topic, and only the leader of that partition handles the key's events. The runtime imports nothing of groups:
groups use it, and any other coordinator can.

A new coordinator consists of:

1. An `InternalTopic`: its name, creation properties, and the record types that its records are decoded by.
2. A class with the methods of `CoordinatorShard`. It holds the state of one partition, without I/O, clock or asyncio.
3. `Event` classes for its requests. A handler calls `runtime.submit(key, event)` with a new `PendingReply` in the
   event, and gets the reply or a future of it.
4. A `CoordinatorRuntime`, made with the broker's parts. `image_changed` must be called for every metadata image, and
   `stop` before the broker stops.

What the runtime guarantees to a shard:

- A partition is loaded once for each leader epoch in which this broker leads it: a new shard gets `replay` for every
  record of the log, in order, and `replay_end_transaction_marker` for every marker; then `loaded`. Until then no event
  reaches it.
- A key handles one event at a time. While the records of an event are on their way into the log, later events of that
  key wait, or are refused if `busy_error` returns an error; other keys do not wait.
- The records of one event are appended as one batch. When all in-sync replicas have them, they are replayed. Over the
  whole partition `replay` is called in the order of the log, so the state at any moment is what a prefix of the log
  says. Markers (`write_marker`) have their place in that order, whichever thread appended what. There are no snapshots
  and there is no rollback, because nothing else has to change the state.
- Then, in this order: `event_completed`, timers, replies, log lines, `work`, `append_completed` (if the effects have
  a `follow_up`; its effects complete before the key's next event), `action`.
- If the records cannot be written: every reply of the effects becomes the error, nothing is replayed,
  `event_completed` gets the error, and so does `append_completed`. `action` is not called. Timers are not set, unless
  the effects `survive_failure`. If the event was a timer that expired, that timer expires again 500 ms later.
- Records of effects with a `producer` belong to its transaction, and are replayed with its id. `write_marker` is done
  when `replay_end_transaction_marker` has been called: then the transaction shows in the state.
- Effects whose `replay_records` is false are those of a state machine that has changed already; their records are
  appended and not replayed.
- A timer belongs to a key and is identified by its `TimerKey`; setting it again moves it. A timer that was set again
  or cancelled after it expired, while its key was busy, is not delivered. When the shard has nothing under the key any
  more, all timers of the key are cancelled.
- `unloaded` is called once, when this broker does not lead the partition any more or stops. Every request that waits
  is answered NOT_COORDINATOR. After that nothing of the shard is called.

Errors of appends become those that clients of a coordinator expect (`partition_writer`). A defect, an exception that
is no KafkaError, becomes UNKNOWN_SERVER_ERROR for its request, and does not stop other events.

Bounds: every event that waits belongs to a connection that waits for its reply, to a timer, or to a metadata image;
timers and state are as many as the log says. Loading holds `load_buffer_bytes` of the log at a time, or one batch.

Limits: a partition is served from the end of its log on, even
if its high watermark is still behind that.

Kafka's coordinator-common module is the model (KIP-848): `CoordinatorRuntime`, `CoordinatorShard`,
`CoordinatorResult`, `CoordinatorLoaderImpl`, `CoordinatorTimer`.
"""
