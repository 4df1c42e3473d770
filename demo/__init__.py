"""A walk through a Kafka log for newcomers: `make demo`, or `python -m demo`.

| module | what |
|---|---|
| `walk_through` | the steps, each with its text and its command |
| `__main__` | the broker for them |
| `processes` | processes that are started in order, watched, and ended in order |
| `three_brokers` | `make cluster`: an etcd and three brokers on this machine |

A reader can type every command; the demo changes no files of the user.
"""
