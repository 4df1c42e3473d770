"""Record batches (magic 2) and their records; the message sets of magic 0 and 1 before them.

| module | what |
|---|---|
| `batch_header` | the header of a batch: its layout, reading it, changing fields in place |
| `batch_builder` | a builder of batches |
| `record_iterator` | the layout of a record; decoding the records of a batch |
| `record_runs` | faster decoding of successive records of equal lengths |
| `record_headers` | the headers of a record (KIP-82) |
| `record_scan` | the keys and positions of records, and batches rebuilt from some of them, for compaction |
| `record_search` | the first record of a batch with some time or a later one |
| `record_validation` | the check of every record of a batch before a leader appends it |
| `recompression` | a batch compressed with another codec |
| `aborted_filter` | the batches that `read_committed` skips |
| `control_records` | control records, such as the markers that end transactions (KIP-98) |
| `message_set` | message sets of magic 0 and 1 |
"""
