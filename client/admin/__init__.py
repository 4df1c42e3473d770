"""The admin client: `Admin` and its calls about topics, configs, offsets, the cluster, groups, transactions.

| module | what |
|---|---|
| `admin` | `Admin`: all calls, with their arguments, results and errors |
| `security_calls` | those of the calls that are about access rules, users and quotas |
| `lifecycle` | the start and the end of an `Admin` |
| `arguments` | values for calls: `NewTopic`, `NewPartitions`, `ConfigResource`, `ConfigChange`, `OffsetSpec` |
| `results` | the values that calls return: `Results`, and a class for each kind of description |
| `calls` | the brokers for each request, retries and time limits; one error for each item |
| `topics`, `configs`, `offsets`, `cluster`, `log_dirs`, `groups`, `group_offsets` | the calls themselves |
| `acls`, `scram_users`, `client_quotas` | the calls about access rules; SCRAM credentials; quotas |
| `acl_values` | access rules, filters of them, and the codes in them |
| `acl_evaluation` | the rule that decides a request, as a broker decides it |
| `transactions` | the calls about transactional ids, and about producers of partitions |
| `hanging_transactions` | the search for transactions that no coordinator will end |
"""
