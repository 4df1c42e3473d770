"""The HTTP port with TLS, client certificates and a token."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config import ConfigError
from tests.peers.certificates import Authority

AUTHORITY = Authority()
SERVER = AUTHORITY.issue("broker", names=["localhost"])
OPEN = {"listeners": "PLAINTEXT://127.0.0.1:0", "metrics.port": "0"}
TOKEN = "Bearer s3cret"


@pytest.fixture
def secured(tmp_path: Path) -> dict[str, str]:
    """A port with TLS, of which the metrics are for clients with certificates or the token."""
    keystore, truststore, token = tmp_path / "key.pem", tmp_path / "trusted.pem", tmp_path / "token"
    SERVER.write_pem(keystore)
    truststore.write_text(AUTHORITY.pem)
    token.write_text("s3cret\n")
    for path in (keystore, token):
        path.chmod(0o600)
    return OPEN | {
        "metrics.ssl.keystore.location": str(keystore),
        "metrics.ssl.truststore.location": str(truststore),
        "metrics.token.file": str(token),
    }


def trusting(certificate: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=AUTHORITY.pem)
    if certificate is not None:
        context.load_cert_chain(certificate)
    return context


async def get(broker: Broker, path: str, context: ssl.SSLContext | None, authorization: str = "") -> tuple[str, str]:
    """The head and the body of an answer."""
    host = None if context is None else "localhost"
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.metrics_port, ssl=context, server_hostname=host)
    try:
        fields = f"Host: localhost\r\nAuthorization: {authorization}\r\nConnection: close"
        writer.write(f"GET {path} HTTP/1.1\r\n{fields}\r\n\r\n".encode())
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
        return head, body
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def status(
    broker: Broker, context: ssl.SSLContext | None, authorization: str = "", path: str = "/metrics"
) -> int:
    return int((await get(broker, path, context, authorization))[0].split()[1])


async def test_the_metrics_are_for_the_token(secured: dict[str, str]) -> None:
    async with Broker(secured) as broker:
        head, body = await get(broker, "/metrics", trusting(), TOKEN)
        assert head.startswith("HTTP/1.1 200")
        assert 'odradek_tls_certificate_expiry_timestamp_seconds{listener="metrics.port"}' in body
        for wrong in ("", "Bearer", "Bearer s3cret2", "Bearer é", "Basic s3cret", "s3cret"):
            head, body = await get(broker, "/metrics", trusting(), wrong)
            assert head.startswith("HTTP/1.1 401")
            assert "\r\nWWW-Authenticate: Bearer" in head
            assert "kafka" not in body


async def test_the_metrics_are_for_clients_with_certificates(secured: dict[str, str], tmp_path: Path) -> None:
    known = AUTHORITY.client("prometheus").write_pem(tmp_path / "prometheus.pem")
    foreign = Authority("other").client("prometheus").write_pem(tmp_path / "foreign.pem")
    async with Broker(secured) as broker:
        assert await status(broker, trusting(known)) == 200
        with pytest.raises((OSError, IndexError)):  # TLS 1.3: refused after the client's handshake
            await status(broker, trusting(foreign))
        assert await status(broker, trusting(), TOKEN) == 200


async def test_probes_are_answered_and_told_nothing(secured: dict[str, str]) -> None:
    async with Broker(secured) as broker:
        assert (await get(broker, "/healthz", trusting()))[1] == "ok\n"
        assert (await get(broker, "/readyz", trusting()))[1] == "ready\n"
        assert await status(broker, trusting(), path="/other") == 404


async def test_a_new_token_and_a_new_certificate_hold_without_a_restart(secured: dict[str, str]) -> None:
    token, keystore = Path(secured["metrics.token.file"]), Path(secured["metrics.ssl.keystore.location"])
    async with Broker(secured) as broker:
        replace(token, "other")
        assert await status(broker, trusting(), TOKEN) == 401
        assert await status(broker, trusting(), "bearer other") == 200
        replace(token, None)
        assert await status(broker, trusting(), "Bearer other") == 401

        renewed = AUTHORITY.issue("broker", names=["localhost"])
        replace(keystore, renewed.write_pem(keystore.with_suffix(".new")).read_text())
        for _ in range(300):
            if await serial(broker) == renewed.certificate.serial_number:
                return
            await asyncio.sleep(0.1)
        raise AssertionError("the old certificate is still in use")


def replace(path: Path, text: str | None) -> None:
    """Replace the text of a secret file, or delete it."""
    path.unlink()
    if text is not None:
        path.touch(0o600)
        path.write_text(text)


async def serial(broker: Broker) -> int:
    _, writer = await asyncio.open_connection(
        "127.0.0.1", broker.metrics_port, ssl=trusting(), server_hostname="localhost"
    )
    try:
        return int(writer.get_extra_info("peercert")["serialNumber"], 16)
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def test_plain_requests_and_silent_clients_do_not_keep_the_others_out(secured: dict[str, str]) -> None:
    async with Broker(secured) as broker:
        silent = [await asyncio.open_connection("127.0.0.1", broker.metrics_port) for _ in range(10)]
        with pytest.raises((OSError, IndexError)):
            await status(broker, None)
        assert await status(broker, trusting(), TOKEN) == 200
    for _, writer in silent:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def test_a_token_needs_no_tls_on_loopback(secured: dict[str, str]) -> None:
    async with Broker(OPEN | {"metrics.token.file": secured["metrics.token.file"]}) as broker:
        assert await status(broker, None) == 401
        assert await status(broker, None, TOKEN) == 200


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"metrics.ssl.keystore.location": None}, "metrics.ssl.truststore.location is set"),
        (
            {
                "metrics.ssl.keystore.location": None,
                "metrics.ssl.truststore.location": None,
                "metrics.host": "0.0.0.0",
            },
            "could read the token",
        ),
        ({"metrics.ssl.keystore.location": "/missing.pem"}, "metrics.ssl.keystore.location: cannot read /missing.pem"),
        ({"metrics.ssl.keystore.password": "pa55"}, "metrics.ssl.keystore"),
        ({"metrics.token.file": "/missing"}, "metrics.token.file: cannot read /missing"),
    ],
)
async def test_what_protects_less_than_it_asks_is_refused(
    secured: dict[str, str], change: dict[str, str | None], text: str
) -> None:
    properties = {name: value for name, value in (secured | change).items() if value is not None}
    with pytest.raises(ConfigError) as caught:
        await Broker(properties).start()
    assert text in str(caught.value)
    assert "pa55" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "mode", "text"),
    [
        ("s3cret", 0o604, "chmod o="),
        ("", 0o600, "no token"),
        ("two words", 0o600, "no token"),
        ("é", 0o600, "no token"),
    ],
)
def test_a_token_file_without_a_secret_is_refused(secured: dict[str, str], content: str, mode: int, text: str) -> None:
    path = Path(secured["metrics.token.file"])
    replace(path, content)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=text):
        asyncio.run(Broker(secured).start())
