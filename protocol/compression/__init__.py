"""The compression codecs of record batches.

| module | what |
|---|---|
| `codecs` | `compress` and `decompress` for all codecs, with a bound on the size of the result; gzip |
| `snappy` | snappy: raw blocks, or the framing of the Java library (xerial) |
| `lz4` | LZ4: one frame of independent blocks |
| `zstd` | Zstandard (KIP-110): one frame or more |
"""
