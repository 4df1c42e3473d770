"""What a broker serves that only reads its log directory: the APIs that change nothing; the others are refused.

POLICY_VIOLATION, because clients do not retry it, and show the message that comes with it. An API that is not named
here changes something, or may: one that is new is refused until somebody has looked.
"""

from __future__ import annotations

from typing import NoReturn

from odradek.broker.apis.table import Handler, HandlerTable
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.schema import Message

_READING = frozenset({
    "api_versions", "consumer_group_describe", "describe_acls", "describe_client_quotas", "describe_cluster",
    "describe_configs", "describe_delegation_token", "describe_groups", "describe_log_dirs", "describe_producers",
    "describe_topic_partitions", "describe_user_scram_credentials", "fetch", "find_coordinator",
    "init_producer_id",  # changes the copy of the metadata alone, and a refusal would be retried by some clients
    "list_config_resources", "list_groups", "list_offsets", "list_partition_reassignments", "metadata",
    "offset_fetch", "offset_for_leader_epoch", "sasl_authenticate", "sasl_handshake",
})  # fmt: skip


class ReadOnlyTable(HandlerTable):
    """The table of such a broker."""

    def _load(self, key: int) -> Handler:
        handler = super()._load(key)
        if self._rows[key].module not in _READING:
            handler = self._handlers[key] = handler._replace(handle=_refuse)
        return handler


def _refuse(services: Services, context: RequestContext, request: Message) -> NoReturn:
    raise KafkaError(ErrorCode.POLICY_VIOLATION, "this broker only reads its log directory (--read-only)")
