"""Which APIs this broker serves, in which versions, and where their handlers are: one row an API.

A handler module `odradek.broker.handlers.<name>` is named as the API's module in `odradek.protocol.messages` and has
two functions:

- `handle(services, context, request)` returns the response; or None, if the client must not get one; or an awaitable
  of either, if something has to be waited for; or steps that return any of these (a generator, see
  `broker.request.time_slices`), if the request or the answer may be a long list. It raises KafkaError if the request as
  a whole fails.
- `error_response(request, code, message)` is the response that says so.

Modules are imported by the first request for them, so that a broker is ready before it has read what it may never need.
What the table lacks is not served: the connection that asks for it is closed, as Apache Kafka does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.broker.request.time_slices import Steps
from odradek.protocol.api import Api, by_key
from odradek.protocol.errors import ErrorCode
from odradek.protocol.schema import Message

if TYPE_CHECKING:
    from odradek.broker.request.context import RequestContext
    from odradek.broker.request.services import Services

Answer = Message | None | Awaitable[Message | None] | Steps[Message | None | Awaitable[Message | None]]


class Row(NamedTuple):
    """The versions of one API that are served, both inclusive, and the module that serves them."""

    module: str
    min_version: int
    max_version: int


ROWS: dict[int, Row] = {
    0: Row("produce", 3, 13),
    1: Row("fetch", 4, 18),
    2: Row("list_offsets", 1, 11),
    3: Row("metadata", 0, 13),
    8: Row("offset_commit", 2, 10),
    9: Row("offset_fetch", 1, 10),
    10: Row("find_coordinator", 0, 6),
    11: Row("join_group", 0, 9),
    12: Row("heartbeat", 0, 4),
    13: Row("leave_group", 0, 5),
    14: Row("sync_group", 0, 5),
    15: Row("describe_groups", 0, 6),
    16: Row("list_groups", 0, 5),
    17: Row("sasl_handshake", 0, 1),
    18: Row("api_versions", 0, 4),
    19: Row("create_topics", 2, 7),
    20: Row("delete_topics", 1, 6),
    21: Row("delete_records", 0, 2),
    22: Row("init_producer_id", 0, 5),
    23: Row("offset_for_leader_epoch", 2, 4),
    29: Row("describe_acls", 1, 3),
    30: Row("create_acls", 1, 3),
    31: Row("delete_acls", 1, 3),
    32: Row("describe_configs", 1, 4),
    33: Row("alter_configs", 0, 2),
    34: Row("alter_replica_log_dirs", 1, 2),
    35: Row("describe_log_dirs", 1, 5),
    36: Row("sasl_authenticate", 0, 2),
    37: Row("create_partitions", 0, 3),
    38: Row("create_delegation_token", 1, 3),
    39: Row("renew_delegation_token", 1, 2),
    40: Row("expire_delegation_token", 1, 2),
    41: Row("describe_delegation_token", 1, 3),
    42: Row("delete_groups", 0, 2),
    43: Row("elect_leaders", 0, 2),
    44: Row("incremental_alter_configs", 0, 1),
    45: Row("alter_partition_reassignments", 0, 1),
    46: Row("list_partition_reassignments", 0, 0),
    47: Row("offset_delete", 0, 0),
    48: Row("describe_client_quotas", 0, 1),
    50: Row("describe_user_scram_credentials", 0, 0),
    60: Row("describe_cluster", 0, 2),
    61: Row("describe_producers", 0, 0),
    64: Row("unregister_broker", 0, 0),
    68: Row("consumer_group_heartbeat", 0, 1),
    69: Row("consumer_group_describe", 0, 1),
    74: Row("list_config_resources", 0, 1),
    75: Row("describe_topic_partitions", 0, 0),
}
"""The last versions are those of Apache Kafka 4.3.1 (InitProducerId 6 is marked unstable there and not offered)."""


class Handler(NamedTuple):
    """What dispatch needs to serve an API; versions are inclusive."""

    api: Api
    min_version: int
    max_version: int
    handle: Callable[[Services, RequestContext, Any], Answer]
    error_response: Callable[[Any, ErrorCode, str], Message]


class HandlerTable(Mapping[int, Handler]):
    """The rows as handlers, by API key; a handler's module is imported when it is looked up for the first time."""

    def __init__(self, rows: Mapping[int, Row] = ROWS) -> None:
        self._rows = rows
        self._handlers: dict[int, Handler] = {}

    def __getitem__(self, key: int) -> Handler:
        handler = self._handlers.get(key)
        return self._load(key) if handler is None else handler

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def _load(self, key: int) -> Handler:
        row = self._rows[key]
        module = import_module(f"odradek.broker.handlers.{row.module}")
        handler = Handler(by_key(key), row.min_version, row.max_version, module.handle, module.error_response)
        self._handlers[key] = handler
        return handler
