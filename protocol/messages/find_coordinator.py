"""FindCoordinator (API key 10): a client finds the coordinator of a group or transactional id; any broker answers.

The coordinator leads the partition of `__consumer_offsets` or `__transaction_state` that the key hashes to. The request
may create that topic; until it exists the response is COORDINATOR_NOT_AVAILABLE (15).
"""

from typing import Annotated, Final

from odradek.protocol.schema import Message, Structure, i8, i16, i32, ignorable, message, since, string, until

FIRST_VERSION_WITH_SEVERAL_KEYS: Final = 4


@message(key=10, versions=(0, 6), flexible_since=3)
class FindCoordinatorRequest(Message):
    """Versions 0–6, flexible from 3.

    v1 adds the key's type, because transactional ids have coordinators, too (KIP-98). v4 names several keys (KIP-699).
    v6 adds share groups (KIP-932). With v2 and v5 the client declares what it supports: waiting for the throttle time
    itself (KIP-219), TRANSACTION_ABORTABLE (KIP-890).
    """

    key: Annotated[string, until(3)] = ""
    key_type: Annotated[i8, since(1)] = 0  # 0 group, 1 transactional id, 2 share partition, `group:topic id:partition`
    coordinator_keys: Annotated[list[string], since(4)] = []


class Coordinator(Structure):
    key: Annotated[string, since(4)] = ""
    node_id: Annotated[i32, since(4)] = 0  # -1 with an error, as is the port
    host: Annotated[string, since(4)] = ""
    port: Annotated[i32, since(4)] = 0
    error_code: Annotated[i16, since(4)] = 0
    error_message: Annotated[string | None, since(4), ignorable] = ""


@message(key=10, versions=(0, 6), flexible_since=3)
class FindCoordinatorResponse(Message):
    """Versions 0–6, flexible from 3.

    v1 adds the throttle time (KIP-124), for which the client itself waits from v2 on (KIP-219), and an error text. v4
    contains several keys, each with its own error (KIP-699).
    """

    throttle_time_ms: Annotated[i32, since(1), ignorable] = 0
    error_code: Annotated[i16, until(3)] = 0
    error_message: Annotated[string | None, since(1), until(3), ignorable] = ""
    node_id: Annotated[i32, until(3)] = 0
    host: Annotated[string, until(3)] = ""
    port: Annotated[i32, until(3)] = 0
    coordinators: Annotated[list[Coordinator], since(4)] = []
