from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.store.etcd.options import EtcdOptions
from odradek.broker.metadata.store.etcd.store import EtcdStore
from odradek.broker.metadata.store.opening import etcd_options, open_store
from odradek.broker.metadata.store.sqlite import FILE_NAME, SqliteStore
from odradek.broker.metadata.store.store import StoreFailedError
from odradek.broker.metrics.counts.metadata_store import MetadataStoreCounts
from odradek.broker.testing.clock import ManualClock


def _config(**etcd: str) -> BrokerConfig:
    properties = {f"metadata.etcd.{name.replace('_', '.')}": text for name, text in etcd.items()}
    return BrokerConfig.load(None, {"node.id": "1"} | properties)


async def test_without_endpoints_the_store_is_a_file(tmp_path: Path) -> None:
    store = await open_store(_config(), tmp_path / FILE_NAME, ManualClock())

    assert isinstance(store, SqliteStore)
    await store.close()


async def test_with_endpoints_the_store_is_etcd(tmp_path: Path) -> None:
    counts = MetadataStoreCounts()
    config = _config(endpoints="127.0.0.1:1")
    store = await open_store(config, tmp_path / FILE_NAME, ManualClock(), counts=counts)

    assert isinstance(store, EtcdStore)
    assert store.counts is counts
    assert not (tmp_path / FILE_NAME).exists()
    await store.close()


def test_every_property_becomes_an_option(tmp_path: Path) -> None:
    for name in ("ca", "certificate", "key"):
        (tmp_path / name).write_text(f"the {name}")

    config = _config(
        endpoints="a:2379, [::1]:2380",
        username="u",
        password="p",
        ca_file=str(tmp_path / "ca"),
        certificate_file=str(tmp_path / "certificate"),
        key_file=str(tmp_path / "key"),
        timeout_ms="250",
    )

    assert etcd_options(config, 0.7) == EtcdOptions(
        endpoints=("a:2379", "[::1]:2380"),
        username="u",
        password="p",
        ca_certificates=b"the ca",
        certificate=b"the certificate",
        key=b"the key",
        timeout=0.25,
        heartbeat=0.7,
    )


def test_connections_are_encrypted_with_certificates_only(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("")

    assert etcd_options(_config(endpoints="a:1", ca_file=str(tmp_path / "ca")), 1).uses_tls
    assert not etcd_options(_config(endpoints="a:1"), 1).uses_tls


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    config = _config(endpoints="a:1", ca_file=str(tmp_path / "gone"))

    with pytest.raises(StoreFailedError, match=r"cannot read metadata\.etcd\.ca\.file = .*gone: No such file"):
        etcd_options(config, 1)


def test_options_do_not_show_their_secrets() -> None:
    shown = repr(EtcdOptions(("a:1",), username="u", password="secret", key=b"secret"))

    assert "secret" not in shown


_WITHOUT_GRPC = """
import asyncio, sys
sys.modules["grpc"] = None  # as if it were not installed
from pathlib import Path
from odradek.broker.broker import Broker
from odradek.broker.clock import SystemClock
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.store.opening import open_store

async def main():
    async with Broker():
        pass
    config = BrokerConfig.load(None, {"node.id": "1", "metadata.etcd.endpoints": "a:1"})
    try:
        await open_store(config, Path(), SystemClock())
    except Exception as error:
        print(error)

asyncio.run(main())
"""


@pytest.mark.process
def test_one_node_needs_no_grpcio_and_several_say_how_to_install_it() -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT_GRPC], capture_output=True, text=True, check=True)

    assert "install it with `pip install 'odradek[cluster]'`" in done.stdout
