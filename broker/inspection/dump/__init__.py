"""The command `dump-log`: the files of a log directory printed as Kafka 4.3.1's DumpLogSegments prints them.

| module | what |
|---|---|
| `command` | the command line: flags, output, exit status |
| `segments` | the files of one command line, one after another, and after them the complaints |
| `log`, `record_batch`, `message` | `.log`: its record batches of magic 2, its messages of magic 0 and 1 |
| `offset_index`, `time_index` | `.index`, `.timeindex`, each compared with its `.log` |
| `transaction_index`, `producer_snapshot` | `.txnindex`, `.snapshot` |
| `record_text`, `coordinator_records` | keys and values as text, or as JSON with an option that names their type |
| `control_records` | the contents of control records |
| `message_json` | a stored message as JSON, with Kafka's error text when it is malformed |
| `log_file`, `index_file` | the files, read a window at a time or as a whole |
| `complaints` | the errors that end a dump; the complaints that the tool prints at its end |
| `options` | the options of the command line |
| `java` | differences between Java and Python: UTF-8, paths, arithmetic |

Every printer is an iterator of pieces of text, in the order in which Kafka writes them, down to half a line before the
byte that ended it: where Kafka's tool ends with a stack trace, it raises DumpError, RemoteProtocolError or OSError.
Pieces of class `Complaint` go to standard error. The order of complaints about several files is that of the files.

The files are read here and not with `odradek.broker.storage`, because the output for damaged files is Kafka's: each
printer accepts what Kafka's tool accepts.

Files are only read. Differs from Kafka: its tool opens `.index` and `.txnindex` for writing, cuts an `.index` to a
multiple of its entries, and creates a missing one, because it uses the classes of the broker; a tool for damaged logs
must not change them.
"""
