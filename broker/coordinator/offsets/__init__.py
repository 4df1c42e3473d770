"""Committed offsets of groups.

| module | what |
|---|---|
| `committed_offsets` | the offsets of one partition's groups, with those of open transactions; when they expire |
| `offset_tables` | offsets by group and partition; those of open transactions also by producer |
| `deleted_topics` | which of them are of deleted topics, by topic ids |
| `events` | requests that change them, as events |
"""
