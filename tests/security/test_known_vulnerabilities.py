"""Vulnerabilities of Kafka and of what surrounds it, each with the test that this broker does not have it.

Those without a home of their own are tested here.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config import BrokerConfig, ConfigError
from odradek.broker.config.jaas import PLAIN_MODULE
from odradek.client import Admin, ClientError
from odradek.client.admin.arguments import ConfigChange, ConfigResource
from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.records.batch_builder import BatchBuilder
from tests.handlers.requests import NOW, create, fetch, produce, values_in
from tests.wire import Wire

REPOSITORY = Path(__file__).resolve().parents[2]

HERE = "tests/security/test_known_vulnerabilities.py"
TESTS = {
    "CVE-2017-12610": "tests/security/authentication/test_plain_exchange.py",
    "CVE-2018-1288": "tests/handlers/test_rights_to_records.py",
    "CVE-2018-17196": "tests/handlers/test_rights_to_records.py",
    "CVE-2021-38153": "tests/security/authentication/test_constant_time.py",
    "CVE-2022-34917": HERE,
    "CVE-2023-25194": HERE,
    "CVE-2023-34455": "tests/protocol/compression/test_codecs.py",
    "CVE-2024-27309": "tests/metadata/administration/test_access_rules.py",
    "CVE-2024-31141": HERE,
    "CVE-2024-56128": "tests/security/authentication/test_scram_exchange.py",
    "CVE-2025-27817": "tests/security/authentication/tokens/test_key_source.py",
    "CVE-2025-27818": HERE,
    "CVE-2025-27819": HERE,
    "CVE-2026-35554": "tests/client/producer/test_record_accumulator.py",
    "CVE-2026-41727": HERE,
}
"""The file with the test of each, which has the number in a docstring or comment."""

SASL = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.jaas.config": f'{PLAIN_MODULE} required user_admin="secret";',
}
MEBIBYTE = 1 << 20


@pytest.mark.parametrize(("number", "path"), TESTS.items())
def test_each_number_has_a_test(number: str, path: str) -> None:
    text = (REPOSITORY / path).read_text()
    assert number in (text.replace(f'"{number}":', "") if path == HERE else text)


async def test_a_client_that_is_not_known_makes_the_broker_allocate_nothing() -> None:
    """CVE-2022-34917: sizes and counts are compared with what has arrived before memory is allocated for them."""
    huge = b"\x7f\xff\xff\xff"
    handshake = b"\0\x11\0\1\0\0\0\1\xff\xff"  # SaslHandshake 1, without a client id
    frames = [
        handshake + b"\x7f\xff",  # a string of 32 KiB
        b"\0\x12\0\3\0\0\0\1\xff\xff\0\xff\xff\xff\xff\x07",  # a compact string of 2 GiB
        b"\0\x12\0\3\0\0\0\1\xff\xff\xff\xff\xff\xff\x0f",  # so many tagged fields in the header
        b"\0\3\0\1\0\0\0\1\xff\xff" + huge,  # Metadata of two billion topics
        b"\0\x24\0\1\0\0\0\1\xff\xff" + huge,  # a token of 2 GiB
    ]
    async with Broker(SASL) as broker:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for frame in frames:
            async with Wire("127.0.0.1", broker.port) as wire:
                wire.writer.write(SIZE_PREFIX.pack(len(frame)) + frame)
                assert await wire.is_closed_by_peer()
        announced = [Wire("127.0.0.1", broker.port) for _ in range(50)]
        async with asyncio.TaskGroup() as group:
            for wire in announced:
                group.create_task(_announce(wire, 512 * 1024))
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 * 1024  # KiB
        async with Wire("127.0.0.1", broker.port) as wire:
            assert (await wire.ask(SaslHandshakeRequest("PLAIN"), 1)).error_code == 0
        for wire in announced:
            wire.writer.close()


async def _announce(wire: Wire, size: int) -> None:
    """Begin a frame of the largest size that is allowed, and leave it at that."""
    wire.reader, wire.writer = await asyncio.open_connection(wire.host, wire.port)
    wire.writer.write(SIZE_PREFIX.pack(size) + b"\0\x11\0\1")
    await wire.writer.drain()


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    settings = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "admin",
        "sasl_password": "secret",
    }
    async with Broker(SASL) as broker, Admin(broker.bootstrap, **settings) as connected:
        yield connected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sasl.jaas.config", "com.sun.security.auth.module.JndiLoginModule required user.provider.url=ldap://a;"),
        ("listener.name.sasl_plaintext.plain.sasl.jaas.config", f"{PLAIN_MODULE} required;"),
        ("sasl.server.callback.handler.class", "org.example.Evil"),
        ("sasl.login.class", "org.example.Evil"),
        ("ssl.engine.factory.class", "org.example.Evil"),
        ("principal.builder.class", "org.example.Evil"),
        ("metric.reporters", "org.example.Evil"),
        ("config.providers", "org.example.Evil"),
        ("authorizer.class.name", "org.example.Evil"),
        ("ssl.keystore.location", "/etc/shadow"),
        ("sasl.oauthbearer.jwks.endpoint.url", "file:///etc/shadow"),
        ("audit.log.file", "/etc/cron.d/evil"),
    ],
)
async def test_no_client_can_name_a_class_a_file_or_a_url(admin: Admin, name: str, value: str) -> None:
    """CVE-2023-25194, CVE-2025-27818, CVE-2025-27819: not even an administrator, whose password may be stolen."""
    broker = ConfigResource.broker(1)
    with pytest.raises(ClientError):
        (await admin.alter_configs({broker: [ConfigChange(name, value)]})).value(broker)


@pytest.mark.parametrize(
    "jaas",
    [
        "com.sun.security.auth.module.JndiLoginModule required user.provider.url=ldap://a;",
        "com.sun.security.auth.module.LdapLoginModule required user_a=b;",
        f"{PLAIN_MODULE} required user_a=b; com.sun.security.auth.module.JndiLoginModule required;",
    ],
)
def test_no_other_login_module_can_be_named(jaas: str) -> None:
    """CVE-2025-27819, CVE-2025-27818."""
    with pytest.raises(ConfigError):
        BrokerConfig.load(None, SASL | {"sasl.jaas.config": jaas})


@pytest.mark.parametrize("value", ["${file:/etc/passwd:root}", "${env:HOME}", "${directory:/etc:passwd}"])
async def test_a_value_is_not_looked_up_in_files_or_the_environment(admin: Admin, value: str) -> None:
    """CVE-2024-31141: a text is that text; there are no configuration providers."""
    broker = ConfigResource.broker(1)
    with pytest.raises(ClientError):
        (await admin.alter_configs({broker: [ConfigChange("log.retention.ms", value)]})).value(broker)
    (await admin.alter_configs({broker: [ConfigChange("max.connections.per.ip.overrides", "127.0.0.1:9")]})).value(
        broker
    )
    assert BrokerConfig.load(None, {"broker.rack": value}).broker_rack == value


async def test_headers_are_data() -> None:
    """CVE-2026-41727: whatever a record's headers say, the broker and its tools do nothing by them."""
    async with Broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        control = [("__TypeId__", b"os.system"), ("kafka_dlt-original-topic", b"__consumer_offsets")]
        builder = BatchBuilder()
        builder.append(NOW, b"k", b"v", control)
        assert (await produce(wire, "t", bytes(builder.build()))).error_code == 0
        assert values_in(await fetch(wire, "t")) == [b"v"]
        topics = {topic.name for topic in (await wire.ask(MetadataRequest(None), 9)).topics}
        assert topics == {"t"}


async def test_the_password_of_the_metadata_store_is_in_no_log_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    properties = {
        "metadata.etcd.endpoints": "127.0.0.1:1",
        "metadata.etcd.username": "broker",
        "metadata.etcd.password": "hunter2",
        "metadata.etcd.timeout.ms": "50",
        "node.id": "1",
    }
    config = BrokerConfig.load(None, properties)
    assert "hunter2" not in repr(config)
    broker = Broker({**properties, "listeners": "PLAINTEXT://127.0.0.1:0"})
    starting = asyncio.ensure_future(broker.start())
    await asyncio.sleep(0.3)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    await broker.close()
    assert "hunter2" not in caplog.text
