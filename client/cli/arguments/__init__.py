"""The flags of commands and their values.

| module | what |
|---|---|
| `command_parser` | a parser that accepts the action anywhere among the flags |
| `connection_arguments` | the shared flags: the cluster, the topic, settings of the client |
| `acl_arguments` | the flags of `acls`, and the access rules that they mean |
| `argument_types` | numbers, names, assignments and separators |
| `times` | points in time and durations |
"""
