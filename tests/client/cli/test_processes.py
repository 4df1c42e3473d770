"""`python -m client` as a process: its output, its exit status, signals and closed pipes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from odradek.client import Producer
from odradek.client.cli import FAILED, INTERRUPTED, PIPE_CLOSED
from tests.client.cli.commands import run, run_process, start
from tests.client.conftest import MakeTopic
from tests.client.doctor.listeners import Silent

pytestmark = pytest.mark.process


def consume(bootstrap: str, topic: str, *arguments: str) -> Sequence[str]:
    return ("consume", "--bootstrap-server", bootstrap, "--topic", topic, *arguments)


def produce(bootstrap: str, topic: str, *arguments: str) -> Sequence[str]:
    return ("produce", "--bootstrap-server", bootstrap, "--topic", topic, *arguments)


def lines(count: int) -> list[bytes]:
    return [b"hello odradek %d" % number for number in range(count)]


async def test_lines_of_standard_input_come_out_again(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    await run_process(*produce(bootstrap, topic), stdin=b"\n".join(lines(20000)))
    out, err = await run_process(*consume(bootstrap, topic, "--from-beginning", "--max-messages", "20000"))
    assert out == lines(20000)
    assert err == "Processed a total of 20000 messages\n"


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_lines_of_a_file_come_out_again(
    bootstrap: str, make_topic: MakeTopic, tmp_path: Path, codec: str
) -> None:
    topic = await make_topic()
    file = tmp_path / "lines"
    file.write_bytes(b"\r\n".join([*lines(100), b"", b"last"]))
    await run_process(
        *produce(bootstrap, topic, "--file", str(file), "--compression-type", codec, "--compression-level", "5")
    )
    out, _ = await run_process(*consume(bootstrap, topic, "--from-beginning", "--no-follow"))
    assert out == [*lines(100), b"", b"last"]


async def test_lines_with_equal_keys_stay_in_order(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(3)
    typed = b"".join(b"key%d=%d=x\n" % (number % 5, number) for number in range(1000))
    await run_process(*produce(bootstrap, topic, "--key-separator", "="), stdin=typed)
    out, _ = await run_process(*consume(bootstrap, topic, "--from-beginning", "--max-messages", "1000"))
    for key in range(5):
        assert [line for line in out if int(line[:-2]) % 5 == key] == [
            b"%d=x" % number for number in range(key, 1000, 5)
        ]


async def test_a_line_without_its_key_is_an_error_after_the_lines_before_it_were_sent(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    _, err = await run_process(*produce(bootstrap, topic, "--key-separator", "\t"), stdin=b"a\t1\nb2\n", status=1)
    assert err == "error: line 2 has no key: it does not contain '\\t'\n"
    assert (await run_process(*consume(bootstrap, topic, "--from-beginning", "--max-messages", "1")))[0] == [b"1"]


async def test_where_reading_begins_and_ends(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    async with Producer(bootstrap) as producer:
        for number in range(10):
            await producer.send(topic, b"%d" % number, partition=number % 2)
        await producer.send(topic, None, partition=1)

    async def read(*arguments: str) -> list[bytes]:
        return (await run(*consume(bootstrap, topic, *arguments)))[0]

    every = [*(b"%d" % number for number in range(10)), b"null"]
    assert sorted(await read("--from-beginning", "--no-follow")) == every
    assert sorted(await read("--from-beginning", "--timeout-ms", "3000")) == every
    assert await read("--partition", "1", "--offset", "earliest", "--no-follow") == [
        b"1",
        b"3",
        b"5",
        b"7",
        b"9",
        b"null",
    ]
    assert await read("--partition", "0", "--offset", "3", "--max-messages", "1") == [b"6"]
    assert await read("--timeout-ms", "700") == []
    assert await read("--partition", "0", "--offset", "latest", "--timeout-ms", "700") == []


async def test_reading_goes_on_until_ctrl_c(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    await run_process(*produce(bootstrap, topic), stdin=b"first\n")
    process = await start(*consume(bootstrap, topic, "--from-beginning"))
    assert process.stdout is not None
    assert await process.stdout.readline() == b"first\n"
    await run_process(*produce(bootstrap, topic), stdin=b"second\n")
    assert await process.stdout.readline() == b"second\n"
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    assert (process.returncode, err) == (INTERRUPTED, b"Processed a total of 2 messages\n")


async def test_ctrl_c_does_not_lose_lines_that_were_read(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    reader = await start(*consume(bootstrap, topic, "--from-beginning", "--max-messages", "2"))
    writer = await start(*produce(bootstrap, topic), stdin=subprocess.PIPE)
    assert writer.stdin is not None
    writer.stdin.write(b"first\nsecond\nthird without an end")
    out, _ = await reader.communicate()
    assert out == b"first\nsecond\n"
    writer.send_signal(signal.SIGINT)
    _, err = await writer.communicate()
    assert (writer.returncode, err) == (INTERRUPTED, b"")


async def test_a_closed_pipe_or_a_full_disk_causes_no_traceback(bootstrap: str) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = await start("cluster", "describe", "--bootstrap-server", bootstrap, stdout=write_end)
    os.close(write_end)
    assert (await process.communicate())[1] == b""
    assert process.returncode == PIPE_CLOSED
    full = os.open("/dev/full", os.O_WRONLY)
    process = await start("cluster", "describe", "--bootstrap-server", bootstrap, stdout=full)
    os.close(full)
    assert b"Traceback" not in (await process.communicate())[1]
    assert process.returncode == FAILED


async def test_a_closed_pipe_ends_consume_with_its_own_status(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    await run_process(*produce(bootstrap, topic), stdin=b"\n".join(lines(20000)))
    read_end, write_end = os.pipe()
    process = await start(*consume(bootstrap, topic, "--from-beginning"), stdout=write_end)
    os.close(write_end)
    os.close(read_end)
    _, err = await process.communicate()
    assert process.returncode == PIPE_CLOSED
    assert b"Traceback" not in err


async def test_an_error_is_printed_in_one_line(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    _, err = await run(*consume(bootstrap, "nowhere"), status=1)
    assert err.splitlines()[0] == "error: there is no topic nowhere. Check its name, or create it"
    _, err = await run(*consume(bootstrap, topic, "--partition", "7"), status=1)
    assert err == f"error: topic {topic} has no partition 7\n"
    _, err = await run(*produce(bootstrap, topic, "--file", "/no/such/file"), status=1)
    assert err == "error: [Errno 2] No such file or directory: '/no/such/file'\n"
    _, err = await run(*consume("127.0.0.1:1", topic), status=1)
    assert err.startswith("error: find the cluster: 127.0.0.1:1: connection refused. Check the bootstrap servers")
    zstd = ("--compression-type", "zstd", "--compression-level", "99")
    _, err = await run(*produce(bootstrap, topic, *zstd), stdin=b"x", status=1)
    assert "compression.level is 99. zstd has the levels -131072 to 22" in err
    _, err = await run(*consume("nowhere:x", topic), status=1)
    assert err.startswith("error: configure the client: the bootstrap server is 'nowhere:x'")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("brew",),
        ("consume",),
        ("consume", "--topic", "t", "--offset", "soon"),
        ("consume", "--topic", "t", "--to-offset", "-3"),
        ("consume", "--topic", "t", "--format", "xml"),
        ("consume", "--topic", "t", "--format", "%y"),
        ("consume", "--topic", "t", "--format", "json", "--print", "key"),
        ("consume", "--topic", "t", "--print", "size"),
        ("consume", "--topic", "t", "--formatter-property", "print.size=true"),
        ("consume", "--topic", "t", "--filter", "size=3"),
        ("consume", "--topic", "t", "--filter", "value~("),
        ("consume", "--topic", "t", "--from-timestamp", "yesterday"),
        ("consume", "--topic", "t", "--max-messages", "0"),
        ("consume", "--topic", "t", "--from-beginning", "--offset", "3"),
        ("produce", "--topic", "t", "--acks", "2"),
        ("produce", "--topic", "t", "--header", "trace"),
        ("produce", "--topic", "t", "--format", "json", "--key-separator", ":"),
        ("produce", "--topic", "t", "--reader-property", "parse.value=true"),
    ],
)
async def test_a_wrong_command_line_is_refused_in_one_line(arguments: Sequence[str]) -> None:
    _, err = await run(*arguments, status=2)
    assert err.startswith("python -m client")
    assert err.count("\n") == 1


async def test_ctrl_c_ends_every_command_without_a_message(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    at = ("--bootstrap-server", bootstrap, "--topic", topic)
    silent = Silent()
    async with silent.listening() as nobody:
        working = [
            ("perf", "produce", *at, "--num-records", "100000", "--throughput", "100", "--reporting-interval", "50"),
            ("perf", "e2e", *at, "--num-records", "100000", "--throughput", "100", "--reporting-interval", "50"),
        ]
        waiting = [
            ("topics", "list", "--bootstrap-server", nobody),
            ("groups", "describe", "--bootstrap-server", nobody),
            ("doctor", "--bootstrap-server", nobody),
        ]
        processes = [await start(*arguments) for arguments in (*working, *waiting)]
        for process in processes[: len(working)]:
            assert process.stdout is not None
            assert re.search(rb" records? sent", await process.stdout.readline())  # of the first interval
        await silent.connected(len(waiting))
        for process in processes:
            process.send_signal(signal.SIGINT)
        ends = [(await process.communicate(), process.returncode) for process in processes]
    assert [(err, status) for (_, err), status in ends] == [(b"", INTERRUPTED)] * 5
    for (out, _), _ in ends[:2]:  # what was measured until then
        assert out.splitlines()[-1].endswith(b" ms 99.9th.")


def test_help_of_a_command_imports_no_client() -> None:
    """The commands import the client when they run, so that --help and mistakes are answered at once."""
    program = (
        "import sys\nfrom odradek.client.cli import COMMANDS, run\n"
        "for command in COMMANDS:\n"
        "    for arguments in ([command, '--help'], [command, 'list', '--help'], [command, 'describe', '--help']):\n"
        "        try: run(arguments)\n"
        "        except SystemExit: pass\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = set(done.stdout.splitlines()[-1].split())
    assert {"odradek.client.cli.produce", "odradek.client.cli.groups", "odradek.client.cli.perf.end_to_end"} <= imported
    assert (
        not {
            "asyncio",
            "msgspec",
            "ssl",
            "json",
            "odradek.client.producer.producer",
            "odradek.client.consumer.consumer",
            "odradek.client.admin.admin",
        }
        & imported
    )


def test_the_doctor_loads_producer_and_consumer_only_to_write() -> None:
    program = "import sys, odradek.client.doctor.diagnosis; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"odradek.client.producer.producer", "odradek.client.consumer.consumer", "odradek.client.admin.admin"}
    assert not heavy & set(done.stdout.split())


async def test_help_names_the_commands_and_imports_no_client() -> None:
    program = "import sys, odradek.client.cli\ntry: odradek.client.cli.run(['--help'])\nfinally: print(*sys.modules)"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    out, _ = await process.communicate()
    *usage, modules = out.decode().splitlines()
    assert any(line.split()[:1] == ["produce"] for line in usage)
    assert any(line.split()[:1] == ["consume"] for line in usage)
    assert not {"asyncio", "msgspec", "odradek.client.producer.producer"} & set(modules.split())
