"""Committed offsets of groups, and the events that change them.

| module | what |
|---|---|
| `committed_offsets` | the committed offsets of one partition's groups: what a group has read, kept until it is |
| `events` | what clients ask of a group's committed offsets, as events: each says what it makes of the group and |
"""
