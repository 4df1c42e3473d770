"""Counts that the broker keeps while it works; every layer may use them.

| module | what |
|---|---|
| `histogram` | quantiles of durations, cheap to record: many at a time, sorted into buckets together |
| `metrics` | what the broker counts while it works: plain integers on small objects, one for each topic, API and |
"""
