"""The checks of `doctor`: they connect as a client does, and report why this machine cannot use a cluster.

```
bootstrap servers ─► listener: name, TCP, protocol ─► metadata ─► each broker's advertised address: the same again
    ┌─────────────────────────────────────────────────────┘
    └─► leaders, replicas in sync, versions, open transactions, clock or round trip
```
| module | what |
|---|---|
| `finding` | the result of a check: severity, subject, text and cure |
| `diagnosis` | the checks in their order |
| `listener` | one address: name resolution, TCP, TLS, Kafka's protocol, authentication |
| `certificates` | the certificate of a TLS listener |
| `authentication` | the mechanisms that a listener offers, and what our principal may do |
| `other_peer` | the kind of a server that is no broker: TLS, HTTP, silent |
| `advertised` | the addresses that brokers advertise |
| `partitions` | partitions without a leader, or with replicas out of sync |
| `open_transactions` | partitions whose last stable offset is held back, and the transactions that hold it |
| `clock` | the difference between our clock and the cluster's |
| `round_trip` | one record written and read, in a topic of its own |

Only `round_trip` writes to the cluster, and it runs only on request (`--write`).
"""
