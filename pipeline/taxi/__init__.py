"""The example: taxi trips are produced, summed up by zone and hour as they come, stored twice, and checked.

```
trips.py ─► topic trips ─► revenue.py (a stream, killed and started again) ─┬─► Parquet by date
   │                                                                       └─► topic revenue, compacted
   └─ the totals that must come out ──────────── example.py compares ◄── both of them, read back
```
`python -m pipeline run taxi` runs it.
"""
