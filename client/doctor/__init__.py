"""Why can this machine not work with that cluster? Connects as a client does, and tells what is in its way.

```
bootstrap servers ─► listener: name, TCP, protocol ─► metadata ─► each broker's advertised address: the same again
                                                          └─► leaders, replicas in sync, versions, clock or round trip
```
| module | what |
|---|---|
| `finding` | what a check has to say: how bad, about what, and the cure |
| `diagnosis` | the checks in their order |
| `listener` | one address: does its name resolve, does somebody listen, is it a Kafka broker |
| `other_peer` | who answers where no broker does: TLS, HTTP, nobody |
| `advertised` | the addresses that brokers advertise |
| `partitions` | partitions without a leader, or with replicas out of sync |
| `clock` | the difference between our clock and the cluster's |
| `round_trip` | a record's way there and back, in a topic of its own |

Nothing is written to the cluster, apart from the last, which has to be asked for.
"""
