"""The APIs that this broker serves: one row for each, and the loading of their handlers.

A new API is a row here, in `rights_table` and in `tests/fuzz/worst_answers.py`, a module in `odradek.broker.handlers`
and a test. Both modules, that of the handler and that of the messages in `odradek.protocol.messages`, have the name of
the API. The handler's module has two functions:

- `handle(services, context, request)` returns the response, or None if the client must not get one. It may return an
  awaitable of either, if it has to wait; or a generator that returns any of these (`request.time_slices`), if the
  request or the answer may be a long list. It raises KafkaError if the request as a whole fails.
- `error_response(request, code, message)` returns the response that reports an error of the whole request.

A handler's module is imported by the first request for it, so that a broker starts before it has imported what it may
never need. An API without a row is not served: the connection that requests it is closed, as by Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import NoReturn

from odradek.broker.apis.rights_table import RIGHTS
from odradek.broker.request.context import RequestContext
from odradek.broker.request.handler import Answer, ApiRow, Handle, Handler
from odradek.broker.request.rights import check_on_cluster
from odradek.broker.request.services import Services
from odradek.protocol.access_rules import Operation
from odradek.protocol.api import by_key
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.schema import Message

ROWS: dict[int, ApiRow] = {
    0: ApiRow("produce", 3, 13, carries_records=True, advertised_from=0),
    1: ApiRow("fetch", 4, 18, only_reads=True, waits_for_others=True, sends_file_slices=True),
    2: ApiRow("list_offsets", 1, 11, only_reads=True),
    3: ApiRow("metadata", 0, 13, only_reads=True),
    8: ApiRow("offset_commit", 2, 10),
    9: ApiRow("offset_fetch", 1, 10, only_reads=True),
    10: ApiRow("find_coordinator", 0, 6, only_reads=True),
    11: ApiRow("join_group", 0, 9, waits_for_others=True),
    12: ApiRow("heartbeat", 0, 4),
    13: ApiRow("leave_group", 0, 5),
    14: ApiRow("sync_group", 0, 5, waits_for_others=True),
    15: ApiRow("describe_groups", 0, 6, only_reads=True),
    16: ApiRow("list_groups", 0, 5, only_reads=True),
    17: ApiRow("sasl_handshake", 0, 1, only_reads=True),
    18: ApiRow("api_versions", 0, 4, only_reads=True),
    19: ApiRow("create_topics", 2, 7),
    20: ApiRow("delete_topics", 1, 6),
    21: ApiRow("delete_records", 0, 2),
    22: ApiRow("init_producer_id", 0, 5, only_reads=True),
    23: ApiRow("offset_for_leader_epoch", 2, 4, only_reads=True),
    24: ApiRow("add_partitions_to_txn", 0, 5),
    25: ApiRow("add_offsets_to_txn", 0, 4),
    26: ApiRow("end_txn", 0, 5),
    27: ApiRow("write_txn_markers", 1, 2),
    28: ApiRow("txn_offset_commit", 0, 5),
    29: ApiRow("describe_acls", 1, 3, only_reads=True),
    30: ApiRow("create_acls", 1, 3),
    31: ApiRow("delete_acls", 1, 3),
    32: ApiRow("describe_configs", 1, 4, only_reads=True),
    33: ApiRow("alter_configs", 0, 2),
    34: ApiRow("alter_replica_log_dirs", 1, 2),
    35: ApiRow("describe_log_dirs", 1, 5, only_reads=True),
    36: ApiRow("sasl_authenticate", 0, 2, only_reads=True),
    37: ApiRow("create_partitions", 0, 3),
    38: ApiRow("create_delegation_token", 1, 3),
    39: ApiRow("renew_delegation_token", 1, 2),
    40: ApiRow("expire_delegation_token", 1, 2),
    41: ApiRow("describe_delegation_token", 1, 3, only_reads=True),
    42: ApiRow("delete_groups", 0, 2),
    43: ApiRow("elect_leaders", 0, 2),
    44: ApiRow("incremental_alter_configs", 0, 1),
    45: ApiRow("alter_partition_reassignments", 0, 1),
    46: ApiRow("list_partition_reassignments", 0, 0, only_reads=True),
    47: ApiRow("offset_delete", 0, 0),
    48: ApiRow("describe_client_quotas", 0, 1, only_reads=True),
    49: ApiRow("alter_client_quotas", 0, 1),
    50: ApiRow("describe_user_scram_credentials", 0, 0, only_reads=True),
    51: ApiRow("alter_user_scram_credentials", 0, 0),
    57: ApiRow("update_features", 0, 2),
    60: ApiRow("describe_cluster", 0, 2, only_reads=True),
    61: ApiRow("describe_producers", 0, 0, only_reads=True),
    64: ApiRow("unregister_broker", 0, 0),
    65: ApiRow("describe_transactions", 0, 0, only_reads=True),
    66: ApiRow("list_transactions", 0, 2, only_reads=True),
    68: ApiRow("consumer_group_heartbeat", 0, 1),
    69: ApiRow("consumer_group_describe", 0, 1, only_reads=True),
    74: ApiRow("list_config_resources", 0, 1, only_reads=True),
    75: ApiRow("describe_topic_partitions", 0, 0, only_reads=True),
}
"""The rows by API key. The last versions are those of Apache Kafka 4.3.1.

Kafka marks InitProducerId 6 as unstable, so it is not served. InitProducerId changes only the copy of the metadata that
a read-only broker works on, and some clients would retry after a refusal, so it counts as only reading. Produce is
advertised from version 0, as by Apache Kafka, although neither serves versions 0 to 2: librdkafka takes a range without
version 0 for a broker that cannot store compressed batches, and then silently sends gzip, snappy and lz4 uncompressed.
"""


class HandlerTable(Mapping[int, Handler]):
    """The handlers by API key, each loaded by its first look-up.

    With `read_only`, a request that may change something is refused with POLICY_VIOLATION, because clients do not retry
    that code and show the message that comes with it. A new row changes something until it has `only_reads`.
    """

    def __init__(self, rows: Mapping[int, ApiRow] = ROWS, *, read_only: bool = False) -> None:
        self._rows = rows
        self._read_only = read_only
        self._handlers: dict[int, Handler] = {}

    def __getitem__(self, key: int) -> Handler:
        handler = self._handlers.get(key)
        return self._load(key) if handler is None else handler

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def advertised_versions(self) -> dict[int, tuple[int, int]]:
        """The first and last version (inclusive) of each API, for the answer to ApiVersions."""
        return {
            key: (row.min_version if row.advertised_from is None else row.advertised_from, row.max_version)
            for key, row in self._rows.items()
        }

    def _load(self, key: int) -> Handler:
        row = self._rows[key]
        module = import_module(f"odradek.broker.handlers.{row.module}")
        handle = _refuse if self._read_only and not row.only_reads else module.handle
        operations = RIGHTS[key].on_cluster
        if operations:
            handle = _guarded(handle, operations)
        handler = self._handlers[key] = Handler(by_key(key), row, handle, module.error_response)
        return handler


def _guarded(handle: Handle, operations: tuple[Operation, ...]) -> Handle:
    """Return `handle` for clients that may perform one of `operations` on the cluster."""

    def guarded(services: Services, context: RequestContext, request: Message) -> Answer:
        check_on_cluster(services, context, *operations)
        return handle(services, context, request)

    return guarded


def _refuse(services: Services, context: RequestContext, request: Message) -> NoReturn:
    raise KafkaError(ErrorCode.POLICY_VIOLATION, "this broker only reads its log directory (--read-only)")
