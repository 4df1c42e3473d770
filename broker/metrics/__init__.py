"""The metrics of a broker, as `/metrics` shows them.

```
hot paths ─► Metrics (counts) ────────────────────┐
                                                  ├─► collectors ─► registry ─► `odradek.broker.server.exposition`
partitions, groups ─► BrokerGauges (at a scrape) ─┘   names, labels
```

| module | what |
|---|---|
| `counts` | counters that every layer increments; imports nothing of the broker |
| `collectors` | the series of a scrape; reads every layer |
"""
