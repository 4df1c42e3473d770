"""A command that prints an error of one row ends with status 1, and prints the other rows."""

from __future__ import annotations

import shutil
from pathlib import Path

from odradek.broker.broker import Broker
from tests.client.cli.commands import run, run_json

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


async def test_a_log_directory_that_has_failed(tmp_path: Path) -> None:
    directories = [tmp_path / name for name in ("one", "two")]
    async with Broker({"log.dirs": ",".join(map(str, directories))}) as broker:
        at = ("--bootstrap-server", broker.bootstrap)
        await run("topics", "create", *at, "--topic", "t", "--partitions", "2")
        assert {row["log_dir"] for row in await run_json("cluster", "log-dirs", *at)} == {*map(str, directories)}
        shutil.rmtree(directories[1])
        out, err = await run("cluster", "log-dirs", *at, status=1)
        left = await run_json("cluster", "log-dirs", *at, status=1)
    assert len(out) == 2
    assert [row["log_dir"] for row in left] == [str(directories[0])]
    assert f"read the log directory {directories[1]}" in err


async def test_a_topic_whose_configs_may_not_be_described() -> None:
    async with Broker(AUTHORIZER) as broker:
        at = ("--bootstrap-server", broker.bootstrap)
        await run("topics", "create", *at, "--topic", "open", "--config", "retention.ms=60000")
        await run("topics", "create", *at, "--topic", "closed")
        anybody = ("--allow-principal", "User:*")
        await run("acls", "add", *at, "--topic", "closed", *anybody, "--operation", "Describe")
        described = await run_json("topics", "describe", *at, "--topic", "open", "--topic", "closed", status=1)
        out, err = await run("topics", "describe", *at, "--topic", "open", "--topic", "closed", status=1)
    assert {one["topic"]: one["configs"] for one in described} == {"open": {"retention.ms": "60000"}, "closed": None}
    assert len(out) == 7
    assert "TOPIC_AUTHORIZATION_FAILED" in err
