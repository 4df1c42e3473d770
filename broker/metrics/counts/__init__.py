"""Counters of a running broker. Every layer may increment them; they import nothing of the broker.

| module | what |
|---|---|
| `metrics` | the counters: plain integers on small objects, one for each topic, API and listener |
| `histogram` | quantiles of durations |
"""
