"""Looking at log directories from the command line: `python -m broker inspect` and `verify`. Files are only read.

| module | what |
|---|---|
| `command` | the two commands: options, exit status |
| `summary`, `samples` | `inspect DIR`: a row for each topic; codecs and ratios from a few batches of each segment |
| `listing` | `inspect DIR topic-partition`: segments, batches, index entries |
| `verification` | `verify DIR`: goes through a directory and says what is wrong, and where |
| `partition_check`, `segments_outcome` | of a partition: its segments in turn, and what one check tells the next |
| `batch_check` | of a segment: every batch |
| `index_check` | of a segment: every entry of its indexes, held against the batches as they pass |
| `transaction_check` | of a partition: its transactions, held against its transaction indexes |
| `small_files_check` | snapshots, checkpoints, identities |
| `problem`, `findings` | what `verify` finds wrong; what opening a directory said that it mended |
| `text` | tables, sizes, times, the progress bar |
| `dump` | `dump-log`: files printed as DumpLogSegments prints them |
"""
