"""The small text files of a log directory and of its partitions.

| module | what |
|---|---|
| `clean_shutdown` | `.kafka_cleanshutdown`: the last broker here stopped in order, so nothing needs recovery |
| `leader_epochs` | which leader epoch began at which offset (KIP-101), kept in `leader-epoch-checkpoint` |
| `meta_properties` | `meta.properties`: whose log directory this is |
| `offset_checkpoints` | the offset checkpoints of a log directory: one offset for each partition, in a small file |
| `partition_metadata` | `partition.metadata`: which topic a partition's directory belongs to, by id, since names |
| `text_file` | the form of Kafka's checkpoint files: a version, how many rows follow, and the rows, each on a |
"""
