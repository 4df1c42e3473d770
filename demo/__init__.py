"""The classic walk-through of a Kafka log, for newcomers: `make demo`, or `python -m demo`.

| module | what |
|---|---|
| `walk_through` | the steps: what is said, what is typed |
| `__main__` | a broker of its own for them |

Everything that is typed can be typed by hand; nothing of the user's is touched.
"""
