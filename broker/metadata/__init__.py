"""Cluster metadata: the store, the image that every broker keeps of it, and the changes to it.

```
store.py                         the seam: range, txn, watch, session
embedded.py history.py           what the stores in this process share
sqlite.py memory.py              one node; tests and simulation
commit.py                        a transaction with a definite outcome
keys.py values.py                what is stored
image.py image_builder.py        what a broker knows, and how it follows
metadata.py                      a broker's membership: start here
registration.py                  broker epochs, and whether a restart lost anything
controller.py leadership.py      who leads: the actor, and its pure decisions
topics.py topic_names.py placement.py configs.py producer_id_blocks.py    administration, by any broker
```
"""
