"""Access rules: who may do what.

| module | what |
|---|---|
| `rule` | one rule, the check of a new one, filters |
| `rule_set` | the index of all rules |
| `authorizer` | decisions, and the interface of what makes them |
| `standard_authorizer` | the decisions of Kafka's `StandardAuthorizer` |
"""
