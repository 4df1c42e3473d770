"""Record batches as Arrow columns, and back.

| module | what |
|---|---|
| `decoding` | decode record batches into Arrow columns, a group of batches at a time |
| `whole_batches` | the complete batches of a buffer, and their headers as arrays |
| `record_starts` | the position of each record in decompressed batches |
| `record_fields` | the fields of each record: numbers, and positions of keys, values and headers |
| `columns` | Arrow columns from the positions of fields |
| `varints` | varints, decoded and encoded many at a time |
| `old_messages` | messages of magic 0 and 1 as Arrow columns |
| `damage` | damaged batches under the three modes of Spark |
| `encoding` | encode Arrow columns as record batches |
| `arrow_values` | conversion between numpy and Arrow without pandas |
"""
