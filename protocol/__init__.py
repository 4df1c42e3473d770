"""Kafka's wire protocol and record formats: bytes to values and back, and nothing else.

No sockets, files, clocks, threads or logging: the broker and the client use the same classes.

| module | what |
|---|---|
| `framing`, `receive_memory`, `header` | frames, and the memory they take; the headers of requests and responses |
| `messages`, `stored_records` | the classes of all messages; those of the records that brokers keep for themselves |
| `schema`, `api` | how a class says what its bytes are; the table of APIs |
| `codec` | classes ↔ bytes |
| `errors`, `error_counts` | the error codes and exceptions; which codes a response carries |
| `records` | record batches under one name; the modules that follow are behind it |
| `varint`, `checksum` | a batch and its parts |
| `compression` | codecs of batches |
| `explain`, `show`, `field_text` | `python -m protocol` |
| `plural` | counts in words, for all that is above |
| `code_generation` | the source of compiled codecs |
"""
