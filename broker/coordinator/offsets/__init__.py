"""Committed offsets of groups.

| module | what |
|---|---|
| `committed_offsets` | the offsets of one partition's groups, with those of open transactions; when they expire |
| `events` | requests that change them, as events |
"""
