"""Lines of input as records, and sending them.

| module | what |
|---|---|
| `input_record` | a record as a line of input tells it, and what is wrong with a line that tells none |
| `json_records` | records as JSON, one object a line: what `consume --format json` prints and `produce --format |
| `lines` | lines of a descriptor as they come, for an event loop that must not wait for them |
| `sending` | sending lines of a descriptor as records, and what became of them |
| `text_lines` | lines of text as records, as Kafka's console producer reads them |
"""
