"""Record batches as Arrow columns, and back.

| module | what |
|---|---|
| `arrow_values` | between numpy and Arrow without pandas |
| `columns` | arrow columns of records, made of where their fields lie: the bytes are copied once, by Arrow |
| `damage` | what a reader does where bytes are no records: Spark's three modes, and the sentence that says which |
| `decoding` | record batches as Arrow columns, some megabytes at a time, never a record at a time |
| `encoding` | arrow columns as a record batch of magic 2: each part of all records is one Arrow array, and Arrow |
| `old_messages` | columns of messages of magic 0 and 1, which Kafka stored before 0.11: rare, and so taken one by one |
| `record_fields` | the fields of all records of some batches, found at once: numbers as arrays, keys and values |
| `record_starts` | where each record of decompressed batches starts: a chain, since only a record's length tells |
| `varints` | the signed varints of records, many at a time: one pass over all of them for each byte of the longest |
| `whole_batches` | the batches in a buffer: found by one walk over their lengths, then all their headers at once |
"""
