"""Transactions (KIP-98, KIP-890): the coordinator of transactional ids, and the markers that end transactions.

| module | what |
|---|---|
| `transaction` | the state of a transactional id and its transitions, with the table |
| `end_transaction` | which EndTxn is accepted in which state |
| `events` | requests and what else happens to a transactional id |
| `stored_transaction` | states as records of `__transaction_state` |
| `transaction_shard` | the transactional ids of one partition of `__transaction_state` |
| `transaction_coordinator` | the coordinator of one broker: producer ids, time-outs, expiry |
| `marker_sender` | sends the markers of decided transactions to the leaders of their partitions |
| `verification` | the check that a partition is in a transaction, before its first batch |
| `local_markers` | the markers in the partitions that this broker leads |
| `other_brokers` | the interface of the other brokers of a cluster |
"""
