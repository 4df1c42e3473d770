"""The commands of docs/cli.md, typed in their order, print what the page shows."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

PAGE = Path(__file__).resolve().parents[3] / "docs" / "cli.md"


async def test_the_commands_of_the_page_print_what_it_shows(bootstrap: str) -> None:
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for typed, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            command = re.sub(r"(^|\| )odradek ", rf"\1{sys.executable} -m odradek ", typed)
            assert command != typed
            process = await asyncio.create_subprocess_shell(
                command.replace("--topic", f"--bootstrap-server {bootstrap} --topic"),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            out, _ = await process.communicate()
            assert out.decode() == shown, typed
            assert process.returncode == 0
