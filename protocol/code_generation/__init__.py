"""Functions that are generated, as Python source, for each layout of a message.

`odradek.protocol.codec` compiles and keeps the encoders and decoders; nothing else calls their writers.

| module | what |
|---|---|
| `source_writer` | the base of the writers: lines of source, the objects that they refer to, compilation |
| `decoder_writer` | the source of decoders |
| `encoder_writer` | the source of encoders |
| `error_counts` | the source of counters, which count the error codes in a response |
| `codec_parts` | tables and functions that generated source calls |
"""
