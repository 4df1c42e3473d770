"""Opening a log: leftover files, recovery, and the log itself.

| module | what |
|---|---|
| `leftovers` | files that a stop in the middle of something left behind in a partition's directory |
| `log_opening` | from a partition's directory to its log: what is found there, what is missing, what must be made |
| `recovery` | making a log sound after an unclean stop: everything from the recovery point on is looked at again |
"""
