"""The source of encoders and decoders, generated for a layout.

| module | what |
|---|---|
| `codec_parts` | what the source of compiled codecs refers to: tables for what is short, functions for what is |
| `decoder_writer` | writes the source of decoders: one straight-line function per layout. |
| `encoder_writer` | writes the source of encoders: one straight-line function per layout. |
| `primitives` | the variable-length pieces of the protocol that compiled codecs share, and the text form of uuids |
| `source_writer` | functions written for one layout: growing source text, the objects that it refers to, and its |
"""
