"""Opening a log: files of interrupted operations, recovery, and the log itself.

| module | what |
|---|---|
| `log_opening` | from a partition's directory to its `Log` |
| `leftovers` | files of interrupted operations: removed or completed |
| `recovery` | the segments after the recovery point, after an unclean stop |
"""
