"""What holds for every command: its JSON parses and is complete, and its status is 1 if the error of a row was printed.

The tables have a line for each command of the parsers, so that a new command fails here until it has its lines.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from odradek.argument_parser import ArgumentParser
from odradek.broker.broker import Broker
from odradek.client import Consumer, ConsumerRecord, Producer, TopicPartition
from odradek.client.cli.arguments.command_parser import CommandParser
from odradek.commands import CLUSTER
from tests.client.cli.commands import run
from tests.effort import examples

LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
OPERATION = "--topic of-rules --operation Read"

WORKS = {
    "produce": "--topic t --file /dev/null",
    "consume": "--topic t --from-beginning --no-follow",
    "topics create": "--topic new",
    "topics list": "",
    "topics describe": "--topic t --offsets",
    "topics offsets": "--topic t",
    "topics alter": "--topic t --config retention.ms=-1",
    "topics delete": "--topic new",
    "topics delete-records": "--topic u --before-offset latest",
    "groups list": "",
    "groups describe": "--group {name}",
    "groups reset-offsets": "--group {name} --topic t --to-earliest",
    "groups delete-offsets": "--group {name} --topic u",
    "groups delete": "--group to-delete",
    "transactions list": "",
    "transactions describe": "--transactional-id {name}",
    "transactions describe-producers": "--topic t --partition 0",
    "transactions find-hanging": "--topic t",
    "transactions abort": "--topic t --partition 0 --producer-id 99 --producer-epoch 0 --coordinator-epoch -1",
    "transactions fence": "--transactional-id {name}",
    "configs describe": "--topic t --all",
    "configs alter": "--topic t --add-config retention.ms=-1",
    "acls add": f"{OPERATION} --allow-principal User:{{name}}",
    "acls list": "",
    "acls check": f"{OPERATION} --principal User:{{name}}",
    "acls remove": f"{OPERATION} --allow-principal User:{{name}}",
    "users add": "--user u --password-file {file}",
    "users list": "",
    "users alter": "--user u --add-config SCRAM-SHA-512=[password={name}]",
    "users remove": "--user u",
    "quotas alter": "--user {name} --add-config producer_byte_rate=1000",
    "quotas describe": "",
    "cluster describe": "",
    "cluster brokers": "",
    "cluster features": "",
    "cluster api-versions": "",
    "cluster log-dirs": "",
    "doctor": "",
    "perf produce": "--topic u --num-records 1",
    "perf consume": "--topic t --num-records 1",
    "perf e2e": "--topic u --num-records 1",
}
"""A line of each command that ends with status 0, in an order in which they work."""

NAMED = {
    "groups list", "groups describe", "groups reset-offsets", "transactions list", "transactions describe",
    "transactions fence", "acls add", "acls list", "acls check", "acls remove", "quotas describe",
}  # fmt: skip
"""The commands whose JSON has the drawn name."""

FAILS = {
    "produce": "--topic t --file {file} --command-property max.request.size=1",
    "consume": "--topic t --partition 77 --no-follow",
    "topics create": "--topic t",
    "topics describe": "--topic t --topic missing",
    "topics offsets": "--topic t --partition 77",
    "topics alter": "--topic t --config retention.ms=soon",
    "topics delete": "--topic missing",
    "topics delete-records": "--topic t --before-offset 99",
    "groups describe": "--group {name} --group missing",
    "groups reset-offsets": "--group missing --topic t --shift-by 1",
    "groups delete": "--group missing",
    "groups delete-offsets": "--group missing --topic t",
    "transactions describe": "--transactional-id {name} --transactional-id missing",
    "transactions describe-producers": "--topic t --partition 77",
    "transactions find-hanging": "--topic missing",
    "transactions abort": "--topic t --partition 0 --start-offset 99",
    "configs describe": "--broker 77",
    "configs alter": "--topic t --add-config retention.ms=soon",
    "acls check": f"{OPERATION} --principal User:nobody",
    "users add": "--user {long} --password-file {file}",
    "users list": "--user missing",
    "users remove": "--user missing",
    "users alter": "--user missing --delete-config SCRAM-SHA-512",
    "quotas alter": "--user {name} --add-config producer_byte_rate=-1",
    "cluster log-dirs": "",
    "perf consume": "--topic t --num-records 99 --timeout-ms 50",
    "perf produce": "--topic t --num-records 1 --command-property max.request.size=1",
    "perf e2e": "--topic t --num-records 1 --command-property max.request.size=1",
}
"""A line of each command with a row that fails."""

WITHOUT_ROWS_THAT_FAIL = {
    "topics list", "groups list", "transactions list", "transactions fence", "acls list", "acls add", "acls remove",
    "quotas describe", "cluster describe", "cluster features", "cluster api-versions", "doctor",
    "cluster brokers",  # test_cluster_of_workers has brokers that do not answer
}  # fmt: skip


def parsers() -> Iterator[tuple[str, ArgumentParser]]:
    for name, command in CLUSTER.items():
        parser = CommandParser(prog=name)
        import_module(command.module).add_arguments(parser)
        if parser._subparsers is None:  # noqa: SLF001 - argparse has no public way to the parsers of actions
            yield name, parser
        else:
            yield from ((f"{name} {action}", its) for action, its in parser._actions_by_name.items())  # noqa: SLF001


WITH_JSON = {name for name, parser in parsers() if "--json" in parser.flags()}


def test_the_tables_have_every_command() -> None:
    names = {name for name, _ in parsers()}
    assert WORKS.keys() == names
    assert FAILS.keys() | WITHOUT_ROWS_THAT_FAIL == names
    assert not FAILS.keys() & WITHOUT_ROWS_THAT_FAIL
    assert names >= WITH_JSON >= NAMED


def texts(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        for name, value in document.items():
            yield from (name, *texts(value))
    elif isinstance(document, list):
        for value in document:
            yield from texts(value)
    elif isinstance(document, str):
        yield document


def words(command: str, line: str, bootstrap: str, **values: str) -> list[str]:
    typed = [word.format(**values) for word in line.split()]
    return [*command.split(), "--bootstrap-server", bootstrap, *typed, *(["--json"] if command in WITH_JSON else [])]


def documents(command: str, out: list[bytes]) -> list[Any]:
    if command == "consume":
        return [json.loads(line) for line in out]
    return [json.loads(b"\n".join(out))]


async def prepare(broker: Broker, name: str) -> None:
    at = ("--bootstrap-server", broker.bootstrap)
    for topic in ("t", "u"):
        await run("topics", "create", *at, "--topic", topic)
        for group in (name, "to-delete"):
            await run("groups", "reset-offsets", *at, "--group", group, "--topic", topic, "--to-earliest", "--execute")
    async with Producer(broker.bootstrap, transactional_id=name) as producer, producer.transaction():
        await producer.send("t", name.encode(), name.encode(), headers=[(name, name.encode())])


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20).filter(
    lambda text: text.strip() and not text.startswith("-")
)


@given(NAMES)
@example(f"é{LINE_ENDS}\"\\,'")
@examples(3)
def test_json_parses_and_is_complete(name: str) -> None:
    async def check(directory: Path) -> None:
        file = directory / "password"
        file.write_text("secret")
        async with Broker(AUTHORIZER) as broker:
            await prepare(broker, name)
            for command, line in WORKS.items():
                out, _ = await run(*words(command, line, broker.bootstrap, name=name, file=str(file)))
                if command in WITH_JSON:
                    found = documents(command, out)
                    assert found, command
                    if command in NAMED:
                        assert any(name in text for text in texts(found)), command

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(check(Path(directory)))


async def test_the_status_is_1_if_a_row_fails(tmp_path: Path) -> None:
    file = tmp_path / "line"
    file.write_text("secret")
    log_dirs = [tmp_path / each for each in ("one", "two")]
    async with Broker(AUTHORIZER | {"log.dirs": ",".join(map(str, log_dirs))}) as broker:
        await prepare(broker, "é")
        await run("acls", "add", "--bootstrap-server", broker.bootstrap, *OPERATION.split(), "--allow-principal=User:a")
        log_dirs[1].rename(tmp_path / "gone")
        for command, line in FAILS.items():
            values = {"name": "é", "file": str(file), "long": "x" * 2000}
            out, err = await run(*words(command, line, broker.bootstrap, **values), status=1)
            assert err.startswith("error: ") or "\nerror: " in err or command == "acls check", command
            if out and command in WITH_JSON:
                assert documents(command, out)
        (tmp_path / "gone").rename(log_dirs[1])


PARTS = st.one_of(
    st.none(),
    st.binary(max_size=12),
    st.text(max_size=12).map(lambda text: text.encode()),
    st.sampled_from(
        [LINE_ENDS.encode(), b"1.10", b"12345678901234567890.123", b"1E400", b"null", b'{"base64":"/w=="}']
    ),
)
RECORDS = st.lists(
    st.tuples(PARTS, PARTS, st.lists(st.tuples(st.text(max_size=6), PARTS), max_size=3), st.integers(0, 2**62)),
    min_size=1, max_size=30,
)  # fmt: skip


@given(RECORDS)
@examples(4)
def test_produce_sends_the_records_that_consume_printed(records: list[Any]) -> None:
    async def check(directory: Path) -> None:
        async with Broker() as broker:
            at = ("--bootstrap-server", broker.bootstrap)
            async with Producer(broker.bootstrap) as producer:
                for key, value, headers, timestamp in records:
                    await producer.send("from", value, key, 0, headers, timestamp)
            out, _ = await run("consume", *at, "--topic", "from", "--from-beginning", "--no-follow", "--json")
            lines = directory / "lines"
            lines.write_bytes(b"\n".join(out))
            await run("produce", *at, "--topic", "to", "--format", "json", "--file", str(lines))
            found = [await read(broker, topic) for topic in ("from", "to")]
        wanted = [(key, value, tuple(headers), timestamp) for key, value, headers, timestamp in records]
        assert [[(one.key, one.value, tuple(one.headers), one.timestamp) for one in each] for each in found] == [
            wanted, wanted,
        ]  # fmt: skip

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(check(Path(directory)))


async def read(broker: Broker, topic: str) -> list[ConsumerRecord]:
    async with Consumer(broker.bootstrap, auto_offset_reset="earliest") as consumer:
        partition = TopicPartition(topic, 0)
        end = (await consumer.end_offsets([partition]))[partition]
        consumer.assign([partition])
        records: list[ConsumerRecord] = []
        while len(records) < end:
            records += await consumer.poll()
        return records
