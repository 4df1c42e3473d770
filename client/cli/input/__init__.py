"""The input of `produce`: lines, the records in them, and sending them.

| module | what |
|---|---|
| `lines` | lines of a file descriptor, read on a thread |
| `input_record` | the record of a line, the error of a line |
| `text_lines` | records as text, as Kafka's console producer reads them |
| `json_records` | records as JSON objects, read and printed |
| `timed_transactions` | the transactions of `produce` and of `perf produce` |
| `sending` | lines sent as records, and their acknowledgements |
"""
