"""Counters of a running broker. Every layer may increment them; they import nothing of the broker.

| module | what |
|---|---|
| `metrics` | the counters: plain integers on small objects, one for each topic, API, listener and fetcher |
| `metadata_store` | the counters of the metadata store that several brokers share |
| `transactions` | the counters of transactions |
| `histogram` | quantiles of durations |
"""
