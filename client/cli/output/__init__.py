"""The output of commands.

| module | what |
|---|---|
| `tables` | tables for people, or JSON documents with `--json` |
| `topic_description`, `group_description` | the output of `topics describe` and `groups describe` |
| `record_formats` | records as `consume` prints them |
| `progress` | a line on standard error that shows the progress of a long command |
| `property_names` | settings in messages, named as commands accept them |
| `client_log` | warnings of the client on standard error |
| `terminal` | colours, and whether a stream is a terminal |
"""
