"""Committed offsets of groups.

| module | what |
|---|---|
| `committed_offsets` | the offsets of one partition's groups, with those of open transactions; when they expire |
| `offset_tables` | offsets by group and partition; those of open transactions also by producer |
| `events` | requests that change them, as events |
"""
