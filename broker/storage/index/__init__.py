"""The indexes of a segment, by offset, time and transaction, and look-ups through them.

| module | what |
|---|---|
| `offset_index`, `time_index` | `.index`: offset to position; `.timeindex`: timestamp to offset |
| `index_file` | the file of both: entries of a fixed size, ascending, searched on the disk |
| `segment_indexes` | both indexes of one segment, updated with its log, checked and rebuilt |
| `transaction_index` | `.txnindex`: the aborted transactions of a segment |
| `timestamp_lookup` | offsets by time (ListOffsets) |
| `position_cache` | a cache of the positions of batches, in front of the offset index |
"""
