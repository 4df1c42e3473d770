"""The flags of commands and their values.

| module | what |
|---|---|
| `argument_types` | what stands behind a flag, read and checked for argparse: each function turns text into a |
| `command_parser` | the parser of a command, whose action may stand anywhere among its flags: `topics |
| `connection_arguments` | the flags that commands share: where the cluster is, which topic is meant, and settings |
| `times` | points in time and durations as people type them |
"""
