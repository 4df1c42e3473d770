"""Checks of batches before they are appended, and the result of an append.

| module | what |
|---|---|
| `append_info` | the result of an append: offsets, timestamps, sizes |
| `batch_refusals` | batches that are refused for their header, size or framing, before any record of them is decoded |
| `follower_batches` | what a follower takes from its leader: whole batches, as they are |
| `refusals` | why a leader refused a batch, where its error code alone does not say it: metrics tell these causes |
| `validation` | what a leader accepts into a log, and what it makes of it: one batch of magic 2, as Kafka's |
"""
