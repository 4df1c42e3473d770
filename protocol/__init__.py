"""Kafka's wire protocol and record formats: bytes to values and back, and nothing else.

No sockets, files, clocks, threads or logging: the broker and the client use the same classes.

| module | what |
|---|---|
| `framing`, `receive_memory`, `header` | frames, and the memory they take; the headers of requests and responses |
| `messages`, `stored_records` | the classes of all messages; those of the records that brokers keep for themselves |
| `schema`, `api` | how a class says what its bytes are; the table of APIs |
| `codec`, `encoder_writer`, `decoder_writer`, `source_writer`, `codec_parts`, `primitives` | classes ↔ bytes |
| `errors`, `error_counts` | the error codes and exceptions; which codes a response carries |
| `records` | record batches under one name; the modules that follow are behind it |
| `batch_header`, `batch_builder`, `record_headers`, `control_records`, `varint`, `checksum` | a batch and its parts |
| `record_iterator`, `record_runs`, `record_stretches` | all records of a batch, decoded |
| `record_scan`, `record_validation` | records looked at where they lie |
| `message_set` | the formats before Kafka 0.11 |
| `compression`, `compression_lz4`, `compression_snappy`, `compression_zstd`, `recompression` | codecs of batches |
| `explain`, `show`, `field_text` | `python -m protocol` |
| `plural` | counts in words, for all that is above |
"""
