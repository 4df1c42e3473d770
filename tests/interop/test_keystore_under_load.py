"""A broker's key store is replaced again and again while clients produce and consume over TLS: they notice nothing.

Open connections keep the certificate of their handshake; new ones get the new one. The path is set again after each
replacement, as an administrator does, and once the broker finds the change itself.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from cryptography import x509

from tests.peers import odradek
from tests.peers.certificates import Authority, Issued
from tests.peers.java_machine import JavaMachine
from tests.peers.server import Server, free_port
from tests.peers.steady_load import Access, Confluent, Java, SteadyLoad

pytestmark = pytest.mark.java

_PATH = "listener.name.tls.ssl.keystore.location"
_LONGEST_SECONDS = 30.0


class Tls(NamedTuple):
    """A running broker with a listener TLS, and one without for its administrator."""

    server: Server
    port: int
    authority: Authority
    directory: Path

    @property
    def access(self) -> Access:
        return Access(f"localhost:{self.port}", self.directory / "ca.pem")

    @property
    def store(self) -> Path:
        return self.directory / "server.pem"

    def set_path(self) -> None:
        """Set the path of the key store to what it is. Raises KafkaException."""
        resource = ConfigResource(ResourceType.BROKER, "1")
        resource.add_incremental_config(
            ConfigEntry(_PATH, str(self.store), incremental_operation=AlterConfigOpType.SET)
        )
        client = AdminClient({"bootstrap.servers": self.server.bootstrap})
        client.incremental_alter_configs([resource])[resource].result(_LONGEST_SECONDS)

    def serial(self) -> int:
        """The serial number of the certificate that a new connection is shown."""
        context = ssl.create_default_context(cafile=self.directory / "ca.pem")
        with (
            socket.create_connection(("localhost", self.port), timeout=_LONGEST_SECONDS) as connected,
            context.wrap_socket(connected, server_hostname="localhost") as tls,
        ):
            shown = tls.getpeercert(binary_form=True)
        assert shown is not None
        return x509.load_der_x509_certificate(shown).serial_number


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[Tls]:
    authority = Authority()
    authority.write(tmp_path)
    store = authority.server().write(tmp_path)
    port, plain = free_port(), free_port()
    properties = {
        "listeners": f"PLAIN://127.0.0.1:{plain},TLS://localhost:{port}",
        "listener.security.protocol.map": "PLAIN:PLAINTEXT,TLS:SSL",
        "inter.broker.listener.name": "PLAIN",
        "ssl.keystore.type": "PEM",
        _PATH: str(store),
    }
    server = odradek.prepare(tmp_path / "server", properties, port=plain).start()
    yield Tls(server, port, authority, tmp_path)
    assert server.stop() == 0
    assert "Traceback" not in server.printed(), server.printed()[-8000:]


def in_place(store: Path, text: str) -> None:
    """Write over the file, in two halves that reach the disk one by one."""
    with store.open("r+") as file:
        file.truncate(0)
        for half in (text[: len(text) // 2], text[len(text) // 2 :]):
            file.write(half)
            file.flush()
            os.fsync(file.fileno())


def until(is_true: Callable[[], bool]) -> None:
    """Wait until something is true. Fails after `_LONGEST_SECONDS`."""
    end = time.monotonic() + _LONGEST_SECONDS
    while not is_true():
        assert time.monotonic() < end
        threading.Event().wait(0.05)


def test_no_client_notices_that_the_key_store_is_replaced(tls: Tls) -> None:
    def replaced(*, by_rename: bool) -> Issued:
        issued = tls.authority.server()
        if by_rename:
            issued.write(tls.directory)
        else:
            in_place(tls.store, issued.key_pem() + issued.chain_pem)
        return issued

    def go_on() -> None:
        before = {name: len(load.received) for name, load in loads.items()}
        until(lambda: all(load.errors or len(load.received) >= before[name] + 20 for name, load in loads.items()))

    with JavaMachine() as machine:
        loads = {
            "confluent": SteadyLoad(Confluent(), tls.access, "confluent"),
            "java": SteadyLoad(Java(machine), tls.access, "java"),
        }
        with ExitStack() as stack:
            for load in loads.values():
                stack.enter_context(load)
            go_on()
            for by_rename in (True, False, True, False):
                issued = replaced(by_rename=by_rename)
                tls.set_path()
                assert tls.serial() == issued.certificate.serial_number
                go_on()

            text = tls.store.read_text()
            tls.store.write_text(text[: len(text) // 2])
            with pytest.raises(KafkaException, match="listener TLS"):
                tls.set_path()
            assert tls.serial() == issued.certificate.serial_number
            go_on()

            found_by_itself = replaced(by_rename=False).certificate.serial_number
            until(lambda: tls.serial() == found_by_itself)
            go_on()
    for load in loads.values():
        assert load.errors == []
        assert load.received == list(range(load.sent))
