"""Changes of the metadata that administrators ask for: topics, properties, quotas, features, access rules, brokers.

| module | what |
|---|---|
| `topics`, `topic_writes` | creating, growing and deleting topics; the transactions |
| `topic_names`, `placement`, `leader_counts` | legal names; where replicas go; how many partitions brokers lead |
| `alter_configs` | changing properties at run time |
| `client_quotas` | setting and removing client quotas |
| `scram_users` | setting and deleting credentials of users |
| `update_features` | changing the finalized levels of features |
| `access_rules` | creating and deleting access rules |
| `unregistration` | removing a broker for good |
"""
