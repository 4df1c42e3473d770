"""Kafka's wire protocol and record formats: bytes to values and back, and nothing else.

No sockets, files, clocks, threads or logging. The broker and the client use the same classes.

| module | what |
|---|---|
| `api` | the table of APIs, by key and by name |
| `messages` | the classes of requests and responses, a module for each API |
| `stored_records` | the classes of the records that brokers write into internal topics and files |
| `schema` | the annotations that declare the fields of those classes; layouts, which resolve them for one version |
| `codec` | encoding and decoding of messages |
| `unfit_value` | which value of a message could not be encoded, for the error |
| `code_generation` | the source of the functions that `codec` compiles |
| `header` | the headers of requests and responses |
| `framing` | the size before each request and response; splitting a stream into frames |
| `receive_memory` | the memory of the buffers that `framing` receives into |
| `java_properties` | the parser of `.properties` files, in which brokers and clients are configured |
| `errors` | the error codes and the exceptions |
| `records` | record batches, records, message sets |
| `compression` | the compression codecs of batches |
| `access_rules` | the codes and special names in access rules |
| `sasl` | the messages of SASL mechanisms, which SaslAuthenticate carries as opaque bytes; the computations of SCRAM |
| `varint`, `uvarint` | the signed varints of records; the unsigned varints of messages |
| `checksum` | CRC-32C and CRC-32 |
| `uuids`, `buffer` | the text form of uuids; the type of bytes-like objects |
| `plural` | counts with nouns in texts: here, because error messages of every layer above need it |
| `cli` | the texts of `python -m protocol` |
"""
