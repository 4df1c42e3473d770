"""The leaders and replicas of partitions: decisions, which are pure functions of an image, and their transactions.

| module | what |
|---|---|
| `leadership` | the decisions, as pure functions: begin here |
| `controller` | the broker that acts on every image: elections when brokers join, leave or lose a log directory |
| `elections` | elections on request, and the periodic return to preferred leaders |
| `reassignment`, `requested_reassignments` | moving partitions to other brokers: the steps; the requests |
| `lost_replicas` | removing a live broker from the in-sync sets of partitions whose logs it has lost |
| `state_changes`, `requested_changes` | transactions that change many partitions; those that administrators request |
"""
