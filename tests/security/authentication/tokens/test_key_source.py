"""Key sources, against an https server on this machine with a certificate that the test makes."""

from __future__ import annotations

import http.server
import ssl
import threading
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import ClassVar

import pytest

from odradek.broker.security.authentication.tokens.key_set import MAXIMUM_BYTES, KeySetError
from odradek.broker.security.authentication.tokens.key_source import FileKeySource, key_source
from tests.peers.certificates import Authority
from tests.security.authentication.tokens.issuer import key_set


class Handler(http.server.BaseHTTPRequestHandler):
    requests: ClassVar[list[str]] = []
    released: ClassVar[threading.Event]

    def do_GET(self) -> None:
        self.requests.append(self.path)
        if self.path == "/redirect":
            self.send_response(302)
            self.send_header("Location", "/keys")
            self.end_headers()
        elif self.path == "/missing":
            self.send_error(404)
        elif self.path == "/hanging":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"x")
            self.wfile.flush()
            self.released.wait(30)
        elif self.path == "/large":
            self.answer(b" " * (MAXIMUM_BYTES + 1))
        else:
            self.answer(key_set("p256"))

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            return

    def log_message(self, *args: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: clients that do not trust the certificate are part of the test."""


AUTHORITY = Authority(key_usage=False)


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ssl.SSLContext]]:
    """The URL of the server, and a context that trusts it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued = AUTHORITY.issue("issuer", names=["127.0.0.1"])
    context.load_cert_chain(issued.write_pem(tmp_path_factory.mktemp("issuer") / "issuer.pem"))
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.load_verify_locations(cadata=AUTHORITY.pem)
    Handler.released = threading.Event()
    with Server(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"https://127.0.0.1:{server.server_address[1]}", trusting
        Handler.released.set()
        server.shutdown()
        thread.join()


def test_a_key_set_is_fetched_from_an_allowed_host(issuer: tuple[str, ssl.SSLContext]) -> None:
    url, context = issuer
    assert key_source(f"{url}/keys?tenant=1", {"127.0.0.1"}, context).fetch() == key_set("p256")
    assert Handler.requests[-1] == "/keys?tenant=1"


def test_an_authority_of_the_machine_needs_no_key_usage(
    issuer: tuple[str, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From Python 3.13 on a default context wants it of every authority, and Java does not."""
    strict = ssl.create_default_context(cadata=AUTHORITY.pem)
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    with pytest.raises(ssl.SSLCertVerificationError, match="key usage"):
        key_source(f"{issuer[0]}/keys", {"127.0.0.1"}, strict).fetch()
    monkeypatch.setattr(ssl, "create_default_context", lambda: strict)
    assert key_source(f"{issuer[0]}/keys", {"127.0.0.1"}).fetch() == key_set("p256")


def test_a_server_that_nobody_vouches_for_is_not_trusted(issuer: tuple[str, ssl.SSLContext]) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        key_source(issuer[0], {"127.0.0.1"}).fetch()


@pytest.mark.parametrize(("path", "error"), [("redirect", "302.*not followed"), ("missing", "404"), ("large", "more")])
def test_other_answers_are_errors(issuer: tuple[str, ssl.SSLContext], path: str, error: str) -> None:
    url, context = issuer
    before = len(Handler.requests)
    with pytest.raises(KeySetError, match=error) as raised:
        key_source(f"{url}/{path}", {"127.0.0.1"}, context).fetch()
    assert len(Handler.requests) == before + 1
    [response] = [entry.locals["response"] for entry in raised.traceback if "response" in entry.locals]
    assert response.isclosed()  # with its socket, which an error would keep until it is collected as garbage


def test_an_abort_ends_a_fetch(issuer: tuple[str, ssl.SSLContext]) -> None:
    url, context = issuer
    source = key_source(f"{url}/hanging", {"127.0.0.1"}, context)
    errors: list[Exception] = []

    def fetch() -> None:
        try:
            source.fetch()
        except (OSError, HTTPException, KeySetError) as error:
            errors.append(error)

    before = len(Handler.requests)
    thread = threading.Thread(target=fetch)
    thread.start()
    while len(Handler.requests) == before:
        thread.join(0.01)
    while thread.is_alive():
        source.abort()
        thread.join(0.05)
    assert len(errors) == 1
    source.abort()


@pytest.mark.parametrize(
    "url",
    [
        "http://issuer.example/keys",
        "https://other.example/keys",
        "https://issuer.example.evil.example/keys",
        "https://issuer.example@evil.example/keys",
        "https://user:pw@issuer.example/keys",
        "ftp://issuer.example/keys",
        "https:///keys",
        "/keys",
        "",
        "file://server/keys",
        "file:",
        "https://issuer.example:99999/keys",
    ],
)
def test_a_url_that_is_not_allowed_is_refused(url: str) -> None:
    """CVE-2025-27817."""
    with pytest.raises(ValueError, match=r".") as raised:
        key_source(url, {"issuer.example"})
    assert "pw" not in str(raised.value)


def test_hosts_are_compared_without_case() -> None:
    key_source("https://ISSUER.example/keys", {"Issuer.Example"})


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "file:///{}", "file://localhost{}"])
def test_a_key_set_in_a_file(tmp_path: Path, form: str) -> None:
    path = tmp_path / "the keys.json"
    path.write_bytes(key_set("p256"))
    source = key_source(form.format(str(path).replace(" ", "%20")), ())
    assert source.fetch() == key_set("p256")
    source.abort()


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(b" " * (MAXIMUM_BYTES + 1))
    with pytest.raises(KeySetError):
        FileKeySource(path).fetch()


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileKeySource(tmp_path / "keys.json").fetch()
