"""Prints the files of a log directory as Kafka 4.3.1's DumpLogSegments does, byte for byte.

| module | what |
|---|---|
| `command` | the command line: flags, output, exit status |
| `segments` | the files of one command line, one after another, and after them the complaints |
| `log`, `record_batch`, `message` | `.log`: its record batches of magic 2, its messages of magic 0 and 1 |
| `offset_index`, `time_index` | `.index`, `.timeindex`, each held against its `.log` |
| `transaction_index`, `producer_snapshot` | `.txnindex`, `.snapshot` |
| `record_text`, `coordinator_records` | keys and values as text, and as JSON where an option says what they are |
| `control_records` | what control records say |
| `message_json` | a stored message as JSON, with Kafka's words when it is malformed |
| `log_file`, `index_file` | the files, read a window at a time or as a whole |
| `complaints`, `offset_watch` | what the tool says at its end; offsets that do not follow each other |
| `options`, `errors` | what the command line asks for; what ends a dump |
| `java` | what Java does: its UTF-8, its paths, the order of its hash maps, its arithmetic |

Every printer is an iterator of pieces of text, in the order in which Kafka writes them, down to half a line in front of
the byte that ended it: what it cannot go on from raises DumpError, RemoteProtocolError or OSError, where Kafka's tool
ends with a stack trace. Pieces of class `Complaint` belong on standard error. A piece may be empty: who prints is
called all along, also where nothing is printed.

Files are only read. Differs from Kafka: its tool opens `.index` and `.txnindex` for writing, cuts an `.index` to a
multiple of its entries, and creates one that is missing, because it uses the classes of the broker; a tool that looks
at a seemingly corrupt log must not change it.
"""
