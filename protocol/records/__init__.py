"""Record batches and their records, of magic 2, and the message sets before them.

| module | what |
|---|---|
| `batch_builder` | building a record batch (magic 2): records are encoded as they are appended, header and |
| `batch_header` | the header of a record batch (magic 2, KIP-98), read and patched where it lies |
| `control_records` | control records: what brokers write into a partition for one another; consumers step over |
| `message_set` | message sets of magic 0 and 1: what brokers stored before Kafka 0.11 and what Produce carried |
| `record_headers` | the headers of a record (KIP-82): a list of pairs, keys repeatable, order kept |
| `record_iterator` | the records of a batch (magic 2), decoded in one tight loop into columns |
| `record_runs` | runs of records of one shape, decoded column by column: a slice whose step is their size is a column |
| `record_scan` | the records of a batch by their keys and their places, for whoever keeps some and drops others |
| `record_validation` | the walk over every record that a leader may make before it appends a batch |
"""
