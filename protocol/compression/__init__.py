"""The compression codecs of record batches.

| module | what |
|---|---|
| `codecs` | the compression codecs of record batches, over whole buffers, with a bound on what decompression may |
| `lz4` | LZ4 as Kafka's clients write it: one LZ4 frame, of the kind that Kafka's own decoder can read |
| `recompression` | changing the codec of a batch without touching its records (`compression.type` of a topic) |
| `snappy` | snappy as Kafka's clients write it: raw (librdkafka), or in the framing of the Java library (xerial) |
| `zstd` | zstandard as Kafka's clients write it (KIP-110): one frame or more, with or without the content size |
"""
