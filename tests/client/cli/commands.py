"""`python -m client` as a process, for tests that type commands."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any


async def start(
    *arguments: str, stdin: int = subprocess.DEVNULL, stdout: int = subprocess.PIPE
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "client", *arguments, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE
    )


async def run(*arguments: str, stdin: bytes = b"", status: int = 0) -> tuple[list[bytes], str]:
    """Run a command; the lines of its output, and what it said on standard error."""
    process = await start(*arguments, stdin=subprocess.PIPE)
    out, err = await process.communicate(stdin)
    assert process.returncode == status, err.decode()
    assert "Traceback" not in err.decode()
    return out.splitlines(), err.decode()


async def run_json(*arguments: str, stdin: bytes = b"") -> Any:
    """Run a command with `--json`; the document that it printed."""
    out, _ = await run(*arguments, "--json", stdin=stdin)
    return json.loads(b"\n".join(out))
