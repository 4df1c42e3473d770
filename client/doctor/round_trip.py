"""One record written and read in a topic of its own: the only check that writes.

The topic has log append time, so the record has a timestamp of the broker's clock. It is deleted afterwards.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

from odradek.client.admin.admin import Admin
from odradek.client.admin.arguments import NewTopic
from odradek.client.config import Address
from odradek.client.consumer.consumer import Consumer
from odradek.client.doctor.clock import compare
from odradek.client.doctor.finding import Finding, Severity
from odradek.client.errors import ClientError
from odradek.client.network.transport import Network
from odradek.client.producer.producer import Producer
from odradek.client.security.settings import SecurityKeywords

_SUBJECT = "round trip"


async def check_round_trip(
    servers: Sequence[Address], network: Network, seconds: float, settings: SecurityKeywords
) -> list[Finding]:
    """Write a record and read it, each within `seconds`; also compare the broker's clock."""
    bootstrap = [str(server) for server in servers]
    timeout_ms = int(seconds * 1000)
    name = f"odradek-doctor-{secrets.token_hex(4)}"
    began = time.monotonic()
    try:
        async with Admin(bootstrap, default_api_timeout_ms=timeout_ms, network=network, **settings) as admin:
            new = NewTopic(name, 1, configs={"message.timestamp.type": "LogAppendTime"})
            (await admin.create_topics([new])).value(name)
            try:
                clock = await _write_and_read(bootstrap, network, name, timeout_ms, settings)
            finally:
                (await admin.delete_topics([name])).value(name)
    except ClientError as error:
        return [Finding(Severity.PROBLEM, _SUBJECT, f"{error.tried}: {error.cause}", error.cure)]
    if clock is None:
        text = f"a record was written to {name}, and could not be read within {timeout_ms} ms"
        return [Finding(Severity.PROBLEM, _SUBJECT, text, "See the log of the broker")]
    milliseconds = (time.monotonic() - began) * 1000
    text = f"a topic was created, a record written and read, the topic deleted ({milliseconds:.0f} ms)"
    return [Finding(Severity.OK, _SUBJECT, text), clock]


async def _write_and_read(
    bootstrap: list[str], network: Network, topic: str, timeout_ms: int, settings: SecurityKeywords
) -> Finding | None:
    """Compare the timestamp of the record with our clock; None if it could not be read. Raises ClientError."""
    async with Producer(
        bootstrap, linger_ms=0, max_block_ms=timeout_ms, request_timeout_ms=timeout_ms, network=network, **settings
    ) as producer:
        requested = time.time_ns() // 1_000_000
        metadata = await (await producer.send(topic, b"from the doctor"))
        answered = time.time_ns() // 1_000_000
    async with Consumer(
        bootstrap, auto_offset_reset="earliest", default_api_timeout_ms=timeout_ms, network=network, **settings
    ) as consumer:
        consumer.assign([(topic, metadata.partition)])
        records = await consumer.poll(timeout_ms)
    return compare("the broker's", records[0].timestamp, requested, answered) if records else None
