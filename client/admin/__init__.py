"""Administration: topics, configs, offsets, the cluster and its groups, over the calls of `Admin`.

| module | what |
|---|---|
| `admin` | `Admin`: every call, with what it takes, returns and raises |
| `arguments` | what calls take: `NewTopic`, `NewPartitions`, `ConfigResource`, `ConfigChange`, `OffsetSpec` |
| `results` | what calls return: `Results`, and a class for each thing that is described |
| `calls` | to whom requests go, how often and for how long; one error an item |
| `topics`, `configs`, `offsets`, `cluster`, `log_dirs`, `groups`, `group_offsets` | the calls themselves |
"""
