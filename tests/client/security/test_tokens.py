"""Tokens of OAUTHBEARER: from functions and from an HTTP server, kept, refreshed, and refused."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from odradek.client.errors import AuthenticationFailedError, BrokerUnreachableError, ClientError, ConfigurationError
from odradek.client.network.tls import context_for_the_web
from odradek.client.security.client_credentials import fetch_token
from odradek.client.security.credentials import ClientCredentials, ProvidedTokens, UnsecuredTokens
from odradek.client.security.settings import SecuritySettings
from odradek.client.security.tokens import TokenSource
from tests.client.provoked_errors import provokes
from tests.peers.certificates import Authority


class Endpoint(HTTPServer):
    """An OAuth server; answers with `status`, `body` and `headers`, and keeps the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.body = b'{"access_token": "t0ken", "expires_in": 300}'
        self.headers: dict[str, str] = {}
        self.requests: list[tuple[str, str, str]] = []

    @property
    def url(self) -> str:
        scheme = "https" if isinstance(self.socket, ssl.SSLSocket) else "http"
        return f"{scheme}://localhost:{self.server_port}/token"


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.requests.append((self.path, self.headers["Authorization"], form))
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def credentials(url: str, secret: str = "geh eim", scope: str | None = "kafka read") -> ClientCredentials:
    return ClientCredentials(url, "my:id", secret, scope, {})


def test_a_token_is_requested_as_the_rfc_says(endpoint: Endpoint) -> None:
    began = time.time()
    token, expires_at = fetch_token(credentials(endpoint.url))
    assert token == "t0ken"
    assert began + 300 <= expires_at <= time.time() + 300
    basic = base64.b64encode(b"my%3Aid:geh+eim").decode()  # RFC 6749, 2.3.1: both are form-encoded first
    assert endpoint.requests == [("/token", f"Basic {basic}", "grant_type=client_credentials&scope=kafka+read")]


def test_without_a_lifetime_the_token_itself_says_when_it_expires(endpoint: Endpoint) -> None:
    expires_at = time.time() + 77
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires_at}).encode()).decode().rstrip("=")
    endpoint.body = json.dumps({"access_token": f"e30.{claims}.sig"}).encode()
    assert fetch_token(credentials(endpoint.url, scope=None))[1] == expires_at
    assert endpoint.requests[0][2] == "grant_type=client_credentials"


@provokes(AuthenticationFailedError)
@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, b'{"error": "invalid_client", "error_description": "geh eim"}', "answered 401 invalid_client. Check the"),
        (500, b"<html>geh eim", "answered 500. Check"),
        (200, b"[]", "answered no JSON object"),
        (200, b"{", "answered no JSON object"),
        (200, b" " * (1 << 20) + b"{}", "answered no JSON object"),
        (200, b"{}", "without an access_token"),
        (200, b'{"access_token": "t0ken"}', "does not say when the token expires"),
        (200, b'{"access_token": "t0ken", "expires_in": true}', "does not say when the token expires"),
    ],
)
def test_a_refusal_names_the_server_and_no_secret(endpoint: Endpoint, status: int, body: bytes, words: str) -> None:
    endpoint.status, endpoint.body = status, body
    with pytest.raises(AuthenticationFailedError, match=words) as raised:
        fetch_token(credentials(f"{endpoint.url}?key=geheim"))
    assert f"get a token: {endpoint.url} " in str(raised.value)
    assert "geh" not in str(raised.value)
    assert "t0ken" not in str(raised.value)


def test_the_secret_follows_no_redirect(endpoint: Endpoint) -> None:
    endpoint.status, endpoint.headers = 302, {"Location": endpoint.url + "/elsewhere"}
    with pytest.raises(AuthenticationFailedError, match="answered 302"):
        fetch_token(credentials(endpoint.url))
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    "url", ["http://auth.example/token", "file:///etc/passwd", "ftp://127.0.0.1/t", "https://", "https://a:b@h/token"]
)
def test_the_secret_goes_nowhere_but_to_https(url: str) -> None:
    with pytest.raises(ConfigurationError, match="sasl_oauthbearer_token_endpoint_url"):
        fetch_token(credentials(url))


def test_the_secret_goes_through_no_proxy_in_plain_text(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    assert fetch_token(credentials(endpoint.url))[0] == "t0ken"


def test_an_https_server_has_a_certificate_that_the_trust_store_vouches_for(endpoint: Endpoint, tmp_path: Path) -> None:
    authority = Authority()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(authority.issue("auth", names=["localhost"]).write_pem(tmp_path / "auth.pem"))
    endpoint.socket = server.wrap_socket(endpoint.socket, server_side=True)
    trusting = SecuritySettings(security_protocol="SSL", ssl_truststore_certificates=authority.pem)
    assert fetch_token(credentials(endpoint.url), context_for_the_web(trusting))[0] == "t0ken"
    for context in (None, context_for_the_web(SecuritySettings())):
        with pytest.raises(BrokerUnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
            fetch_token(credentials(endpoint.url), context)
    assert len(endpoint.requests) == 1


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(BrokerUnreachableError, match="cannot be reached"):
        fetch_token(credentials("http://127.0.0.1:1/token"))


async def test_a_function_may_block_be_async_or_return_something_to_await() -> None:
    threads = []

    def blocking() -> tuple[str, float]:
        threads.append(threading.current_thread())
        return "one", time.time() + 60

    async def asynchronous() -> tuple[str, float]:
        await asyncio.sleep(0)
        return "two", time.time() + 60

    assert (await TokenSource(ProvidedTokens(blocking, {})).token()).value == "one"
    assert threads != [threading.main_thread()]
    assert (await TokenSource(ProvidedTokens(asynchronous, {})).token()).value == "two"
    assert (await TokenSource(ProvidedTokens(partial(asynchronous), {})).token()).value == "two"


async def test_connections_share_a_token_until_most_of_its_life_is_over() -> None:
    calls: list[float] = []

    def provider() -> tuple[str, float]:
        calls.append(time.time())
        return f"token {len(calls)}", time.time() + 60

    source = TokenSource(ProvidedTokens(provider, {"team": "blue"}))
    tokens = await asyncio.gather(*(source.token() for _ in range(10)))
    assert {token.value for token in tokens} == {"token 1"}
    assert source.extensions == {"team": "blue"}
    source._refresh_at = time.time()  # noqa: SLF001 - as if four fifths of its life were over
    assert (await source.token()).value == "token 2"


async def test_the_old_token_is_used_while_no_new_one_can_be_got(caplog: pytest.LogCaptureFixture) -> None:
    answers: list[Any] = [("old", time.time() + 60)]

    def provider() -> tuple[str, float]:
        answer: tuple[str, float] = answers.pop()
        return answer

    source = TokenSource(ProvidedTokens(provider, {}))
    await source.token()
    source._refresh_at = 0  # noqa: SLF001
    with caplog.at_level(logging.WARNING):
        assert (await source.token()).value == "old"
    assert "the client uses the token before" in caplog.text


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("t0ken", "returned str. Return the token and the time"),
        (("t0ken",), "returned tuple"),
        (("t0ken", "soon"), "returned tuple"),
        (("t0ken", 3600), "the token of sasl_oauth_token_provider has expired"),  # a duration, not a time
        (None, "returned NoneType"),
    ],
)
async def test_what_a_function_returns_is_checked(given: Any, words: str) -> None:
    with pytest.raises(AuthenticationFailedError, match=words) as raised:
        await TokenSource(ProvidedTokens(lambda: given, {})).token()
    assert "t0ken" not in str(raised.value)


async def test_the_error_of_a_function_is_attached_and_not_quoted() -> None:
    def provider() -> tuple[str, float]:
        raise RuntimeError("geheim")

    with pytest.raises(AuthenticationFailedError, match="raised RuntimeError") as raised:
        await TokenSource(ProvidedTokens(provider, {})).token()
    assert isinstance(raised.value.__cause__, RuntimeError)
    assert "geheim" not in str(raised.value)


async def test_a_client_error_of_a_function_is_raised_as_it_is() -> None:
    def provider() -> tuple[str, float]:
        raise ClientError("get a token", "the vault is closed")

    with pytest.raises(ClientError, match="the vault is closed"):
        await TokenSource(ProvidedTokens(provider, {})).token()


async def test_an_unsecured_token_has_the_subject() -> None:
    token = await TokenSource(UnsecuredTokens("alice", "read", 60, {})).token()
    header, claims, signature = token.value.split(".")
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none"}
    said = json.loads(base64.urlsafe_b64decode(claims + "=="))
    assert (said["sub"], said["scope"], signature) == ("alice", "read", "")
    assert said["exp"] - said["iat"] == 60
