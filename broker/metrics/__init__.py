"""What a broker tells of itself at `/metrics`.

```
hot paths ─► Metrics (counts) ────────────────────┐
                                                  ├─► collectors ─► registry ─► `odradek.broker.server.exposition`
partitions, groups ─► BrokerGauges (looked up) ───┘   names, labels
```

| module | what |
|---|---|
| `collectors` | what a scrape returns, above the broker |
| `counts` | what is counted, below every other layer |
"""
