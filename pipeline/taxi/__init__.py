"""The example: produce taxi trips, sum up revenue by zone and hour in a stream, store it twice, and check it.

```
trips.py ─► topic trips ─► revenue.py (a stream, killed and restarted) ─┬─► Parquet by date
   │                                                                   └─► topic revenue, compacted
   └─ expected totals ──────────── example.py compares ◄────────────────── both, read back
```
`python -m pipeline run taxi` runs it.
"""
