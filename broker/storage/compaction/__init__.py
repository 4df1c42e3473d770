"""Compaction (cleanup.policy=compact): keep the last record of each key. Kafka's `LogCleaner` and `Cleaner`.

| module | what |
|---|---|
| `cleaner`, `cleaner_report` | a round: choose a log, compact it, swap the new segments in; its metrics |
| `cleaner_process`, `cleaner_worker` | the process that does the work: the broker's side, and its main function |
| `cleaning_job` | the messages between the two |
| `log_cleaning` | the two passes over one log |
| `key_offsets`, `dirty_offsets` | the results of the first pass: the last offset of each key, a state of each offset |
| `batch_cleaning`, `cleaned_transactions` | the second pass: the rules for records, batches and markers |
| `cleaned_segment` | the segment that the second pass writes |
| `pace`, `throttle` | pauses for the requests of the broker; log.cleaner.io.max.bytes.per.second |

`odradek.broker.maintenance.cleaner_threads` decides when rounds run; `cleanable` decides which log they take.
"""
