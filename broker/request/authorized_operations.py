"""The operations that a client may perform on the cluster, a topic or a group (KIP-430): all, without access rules.

A set of operations is an int32 with the bits of their codes in Kafka's `AclOperation`: 3 read, 4 write, 5 create,
6 delete, 7 alter, 8 describe, 9 cluster action, 10 describe configs, 11 alter configs, 12 idempotent write.
"""

from __future__ import annotations

ALL_CLUSTER_OPERATIONS = 0b1_1111_1010_0000
ALL_TOPIC_OPERATIONS = 0b0_1101_1111_1000
ALL_GROUP_OPERATIONS = 0b0_1101_0100_1000

NOT_REQUESTED = -0x80000000
"""The value in place of a set that the request does not want."""
