"""Cluster metadata: the store, the image of it that every broker keeps, and the operations that change it.

| module | what |
|---|---|
| `metadata` | a broker's membership in its cluster: begin here |
| `store` | the metadata store: the interface and its implementations |
| `keys`, `values` | the keys and values in the store |
| `image`, `image_builder` | the cluster at one revision, in memory; from one image to the next |
| `stored_rules` | the access rules in the store and in an image |
| `client_quotas` | client quotas: their keys, and their part of the image |
| `revision_waits` | waits for the image to reach a revision |
| `time_limit` | the time limit of a request that changes metadata |
| `current_config` | the broker's configuration as it holds now |
| `features` | the features and their finalized levels |
| `membership` | a broker's session, renewed when it is lost |
| `cluster_record` | the id of the cluster; which store a broker accepts |
| `freeze` | the image stays as it is while the store does not have the cluster |
| `registration` | broker epochs, and losses between two runs |
| `leaders` | the controller, elections, reassignments |
| `administration` | changes that administrators ask for: topics, properties, features, access rules, quotas |
| `deleted_topics` | the records of deletions, without which no log is deleted |
| `scram_users` | the SCRAM users: their values in the store, their part of the image |
| `producer_id_blocks` | allocating producer ids |
| `adoption` | creating topics for the logs of another broker's directories |
"""
