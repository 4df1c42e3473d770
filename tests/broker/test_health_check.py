"""The health check of a container finds the broker's own port, whatever has set it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from odradek.broker import health_check
from odradek.broker.broker import Broker
from tests.peers.certificates import Authority

IMAGE = ["/opt/odradek/bin/python", "/opt/odradek/bin/odradek", "broker", "--config"]


async def check(*words: str) -> int:
    return await asyncio.to_thread(health_check.main, [*words, ""])


@pytest.mark.parametrize("init", [[], ["/sbin/docker-init", "--"]])
async def test_it_asks_the_port_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], init: list[str]
) -> None:
    file = tmp_path / "server.properties"
    async with Broker({"metrics.port": "0"}) as broker:
        file.write_text(f"node.id=1\nmetrics.host=0.0.0.0\nmetrics.port={broker.metrics_port}\n")
        assert await check(*init, *IMAGE, str(file)) == 0
        assert capsys.readouterr().out == "ready\n"
        file.write_text("node.id=1\nmetrics.port=9404\n")
        override = f"--override=metrics.port={broker.metrics_port}"
        assert await check(*init, *IMAGE, str(file), override) == 0
    assert await check(*init, *IMAGE, str(file), override) == 1
    port = override.rpartition("=")[2]
    assert f"http://127.0.0.1:{port}/readyz: " in capsys.readouterr().err


async def test_it_speaks_tls_if_the_port_does(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    issued = Authority().server()
    store = tmp_path / "store.pem"
    store.touch(0o600)
    store.write_text(issued.key_pem() + issued.chain_pem)
    tls = {"metrics.ssl.keystore.location": str(store)}
    async with Broker({"metrics.port": "0", **tls}) as broker:
        overrides = [f"--override={name}={value}" for name, value in tls.items()]
        assert await check(*IMAGE[:3], *overrides, f"--override=metrics.port={broker.metrics_port}") == 0
    assert capsys.readouterr().out == "ready\n"


@pytest.mark.parametrize("port", ["-1", "0"])
async def test_without_a_fixed_port_nothing_is_asked(capsys: pytest.CaptureFixture[str], port: str) -> None:
    assert await check(*IMAGE[:3], f"--override=metrics.port={port}") == 0
    assert "not checked" in capsys.readouterr().out


async def test_a_wrong_property_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert await check(*IMAGE[:3], "--override=metrics.port=x") == 1
    assert "metrics.port" in capsys.readouterr().err
