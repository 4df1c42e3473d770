"""The indexes of a segment, by offset, time and transaction, and lookups through them.

| module | what |
|---|---|
| `index_file` | what the offset index and the time index share: a file of fixed-size entries, ascending, searched |
| `position_cache` | a cache of the positions of batches, in front of the offset index |
| `offset_index` | the offset index of a segment (`.index`): where in the log to start looking for an offset |
| `segment_indexes` | the offset index and the time index of a segment, kept in step with its log, and made again |
| `time_index` | the time index of a segment (`.timeindex`): where to start looking for records of a time |
| `timestamp_lookup` | finding offsets by time (ListOffsets): through the time index to a place in the log, then |
| `transaction_index` | the transaction index of a segment (`.txnindex`): the transactions whose abort markers lie |
"""
