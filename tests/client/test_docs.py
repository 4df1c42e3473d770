"""The programs of docs/client.md run as the page says."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.conftest import MakeTopic

pytestmark = pytest.mark.process

PAGE = Path(__file__).resolve().parents[2] / "docs" / "client.md"


async def test_the_programs_of_the_page_run(bootstrap: str, make_topic: MakeTopic, topic: str) -> None:
    await make_topic()
    programs = [
        program.replace("localhost:9092", bootstrap).replace('"orders"', f'"{topic}"')
        for program in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    ]
    produce, consume, share, administer = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-u", "-c", program, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for program in programs[:4]  # the fifth is that of transactions (transactions.test_copying)
    ]
    out, err = await produce.communicate()
    assert produce.returncode == 0, err.decode()
    assert out.split()[:3] == [topic.encode(), b"0", b"0"]
    assert consume.stdout is not None
    assert b"b'customer 7' b'three socks' (('trace', b'42'),)" in await consume.stdout.readline()
    assert share.stdout is not None
    shared = sorted([await share.stdout.readline() for _ in range(2)])
    assert shared[0] == b"audit three 0 b'three socks'\n"
    assert shared[1] in (b"billing one 0 b'three socks'\n", b"billing two 0 b'three socks'\n")
    share.send_signal(signal.SIGINT)
    await share.communicate()
    out, err = await administer.communicate()
    assert administer.returncode == 0, err.decode()
    first, described, lost, end = out.decode().splitlines()
    assert (first, end) == ("3 partitions", "ends at 0")
    assert described.startswith("invoices TopicDescription(name='invoices'")
    assert lost.startswith("no-such-topic describe a topic on no-such-topic at ")
    consume.send_signal(signal.SIGINT)
    await consume.communicate()
