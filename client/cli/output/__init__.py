"""The output of commands: tables, records, progress, colours.

| module | what |
|---|---|
| `client_log` | what the client logs while a command runs: `warning: …` on standard error, such as a broker that |
| `group_description` | a group as `groups describe` shows it: the members, what each owns, what is committed and |
| `progress` | how far a long command is and how fast: one line on standard error, renewed in place, only on a |
| `record_formats` | how a record is printed: as Kafka's console consumer does, as JSON (`json_records`), or by a |
| `tables` | the results of a command: a table for people, or one JSON document with `--json` |
| `terminal` | whether somebody watches: colours and progress go to terminals only, and colours not where NO_COLOR |
| `topic_description` | a topic as `topics describe` shows it |
"""
