"""The handlers: one module for each API, named as its module in `odradek.protocol.messages`.

The folder has as many modules as there are served APIs, so that the name of an API is the name of its file. Every
module has two functions, `handle` and `error_response`; `odradek.broker.apis.table` describes them and has a row for
each API. Code that several handlers share is in `odradek.broker.request`.

A new API is a module here, a row in `odradek.broker.apis.table`, and a test in `tests/handlers`. Tests fail until its
entry in `apis.not_served` is removed, this map has its name, and `make docs` has written `docs/apis.md`.

| module | what |
|---|---|
| `produce`, `fetch`, `list_offsets`, `offset_for_leader_epoch`, `delete_records` | records |
| `init_producer_id`, `describe_producers` | idempotent producers |
| `add_partitions_to_txn`, `add_offsets_to_txn`, `end_txn`, `txn_offset_commit`, `write_txn_markers` | transactions |
| `describe_transactions`, `list_transactions` | transactions, for administrators |
| `api_versions`, `metadata`, `describe_cluster`, `describe_topic_partitions` | the cluster |
| `unregister_broker`, `update_features` | the cluster: removed brokers, levels of features |
| `create_topics`, `create_partitions`, `delete_topics` | topics |
| `describe_configs`, `alter_configs`, `incremental_alter_configs`, `list_config_resources` | properties |
| `find_coordinator` | coordinators |
| `join_group`, `sync_group`, `heartbeat`, `leave_group`, `describe_groups` | groups of the classic protocol |
| `consumer_group_heartbeat`, `consumer_group_describe` | groups of the consumer protocol |
| `list_groups`, `delete_groups` | groups of all types |
| `offset_commit`, `offset_fetch`, `offset_delete` | committed offsets |
| `elect_leaders`, `alter_partition_reassignments`, `list_partition_reassignments` | replicas |
| `describe_log_dirs`, `alter_replica_log_dirs` | log directories |
| `sasl_handshake`, `sasl_authenticate` | authentication |
| `describe_user_scram_credentials`, `alter_user_scram_credentials` | users of SCRAM |
| `describe_acls`, `create_acls`, `delete_acls` | access rules |
| `describe_client_quotas`, `alter_client_quotas` | quotas |
| `create_delegation_token`, `renew_delegation_token` | delegation tokens: refused |
| `expire_delegation_token`, `describe_delegation_token` | delegation tokens: refused |
"""
