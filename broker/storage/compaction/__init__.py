"""Compaction (cleanup.policy=compact): of each key the log keeps the last record. Kafka's `LogCleaner` and `Cleaner`.

| module | what |
|---|---|
| `cleaner`, `cleaner_report` | a round: choose a log, have it compacted, swap the new segments in; its numbers |
| `cleaner_process`, `cleaner_worker` | the broker's end, and the other end, of the pipe to the process that does it |
| `cleaning_job` | what goes through that pipe |
| `log_cleaning` | in that process: the two passes over one log |
| `key_offsets`, `dirty_offsets` | what the first pass collects: the last offset of each key, a state of each offset |
| `batch_cleaning`, `cleaned_transactions` | what the second pass leaves of a batch |
| `cleaned_segment` | the segment that it writes |
| `pace`, `throttle` | giving way to requests; log.cleaner.io.max.bytes.per.second |

When rounds run is decided above the log, in `odradek.broker.maintenance.compaction_rounds`.
"""
