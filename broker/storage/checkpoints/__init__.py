"""The small files of a log directory and of its partitions.

| module | what |
|---|---|
| `meta_properties` | `meta.properties`: node, cluster and id of a log directory |
| `clean_shutdown` | `.kafka_cleanshutdown`: the marker of a clean stop |
| `metadata_revision` | `odradek-metadata-revision`: what was last seen of the shared metadata store |
| `checkpoints` | the four offset checkpoints of a log directory together |
| `offset_checkpoints` | recovery points, log start offsets, high watermarks, cleaned offsets of all partitions |
| `partition_metadata` | `partition.metadata`: the topic id of a partition's directory |
| `leader_epochs` | `leader-epoch-checkpoint`: the start offset of each leader epoch |
| `text_file` | the rows of Kafka's checkpoint files |
"""
