"""Cluster metadata: the store, the image that every broker keeps of it, and the changes to it.

| module | what |
|---|---|
| `metadata` | a broker's membership: begin here |
| `store` | the seam: range, txn, watch, session |
| `keys`, `values` | what is stored |
| `image`, `image_builder` | what a broker knows, and how it follows |
| `registration`, `unregistration` | broker epochs, and what a restart may have lost; a broker that has left for good |
| `controller`, `leadership`, `elections` | who leads: the actor, its pure decisions, elections that are asked for |
| `topics`, `topic_names`, `placement` | topics are created, grown and deleted, by any broker |
| `alter_configs` | properties that are changed at run time |
| `current_config` | the broker's configuration as it holds now |
| `producer_id_blocks` | producer ids |
| `adoption` | topics of log directories that another broker has filled |
"""
