"""The checks of batches before they are appended, and the result of an append.

| module | what |
|---|---|
| `validation` | the checks of a client's batch, and the changes that a leader makes to it |
| `refusals` | the errors of rejected batches |
| `follower_batches` | the checks of batches that a follower fetched from its leader |
| `origin` | the origin of an append: a client or a coordinator |
| `append_info` | the result of an append: offsets, timestamps, sizes |
"""
