"""The commands `inspect`, `verify` and `dump-log`, which read log directories and change nothing.

| module | what |
|---|---|
| `command` | `inspect` and `verify`: options, exit status |
| `target` | what `inspect PATH` is about: a log directory, a partition, a segment |
| `summary`, `samples` | `inspect DIR`: a row for each topic; codecs and ratios from a few batches of each segment |
| `open_transactions` | the open transactions in the directory of `inspect DIR` |
| `listing` | `inspect DIR topic-partition`: segments, batches, index entries |
| `verification` | `verify DIR`: the check of a whole directory |
| `partition_check`, `segments_outcome` | the check of a partition; the results of its parts, joined |
| `batch_check` | the check of every batch of a segment |
| `index_check` | the check of every entry of a segment's two indexes against the batches |
| `transaction_check` | the check of a partition's transactions against its transaction indexes |
| `small_files_check` | the checks of snapshots, checkpoints, identities |
| `problem`, `findings` | a fault that `verify` reports; the warnings of opening a directory |
| `text` | tables, sizes, times, the progress bar |
| `dump` | `dump-log`: files printed as DumpLogSegments prints them |
"""
