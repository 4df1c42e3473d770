"""Transactions (KIP-98, KIP-890): their coordinator, their markers, and the partitions that take part.

| module | what |
|---|---|
| `local_markers` | the markers in the partitions that this broker leads |
"""
