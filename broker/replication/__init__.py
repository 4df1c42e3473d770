"""The partitions on this broker: leadership, high watermark, appends in order, fetch sessions.

| module | what |
|---|---|
| `partitions`, `partition` | the registry; one partition: leader, high watermark, checks before reads and writes |
| `fencing` | whether this broker may still act as a leader, after its session may have ended |
| `partition_events` | the events of a partition: the high watermark has moved, records were appended |
| `partition_changes` | the changes that a new metadata image makes to partitions, in order |
| `log_changes` | the logs of new and deleted partitions, several in one job of a disk thread |
| `reopening` | a new partition in the place of one whose log was restored to an earlier state |
| `followers`, `replica_state` | the leader's view of its followers: how far each has fetched, and when |
| `isr`, `isr_changes` | decisions about in-sync replicas; their changes in the metadata store |
| `lost_logs`, `lost_replicas` | the logs in a failed directory, and those that are missing; their report |
| `follower/` | fetching from the leaders of other replicas |
| `appends/` | the order of appends; the threads that keep disk work off the event loop |
| `fetch/` | fetch sessions; the result of a read |
| `offset_lookup` | the offset for a timestamp |
| `record_deletion` | the deletion of the oldest records |
| `transaction_markers` | the markers that end a transaction in its partitions |
| `refused_batches` | the metrics that a refused batch moves |
"""
