"""A Python environment with the packages that workers need according to docs/pipeline.md, but without the project."""

from __future__ import annotations

import subprocess
import sysconfig
import venv
from pathlib import Path

_LEFT_OUT = ("odradek", "__editable__", "uvloop", "re2", "xxhash", "prometheus_client", "matplotlib")


def bare_python(directory: Path) -> str:
    """Create the environment in a new directory, and return its interpreter. The packages are links."""
    venv.create(directory, symlinks=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(_LEFT_OUT) and path.suffix != ".pth":
            (packages / path.name).symlink_to(path)
    python = str(directory / "bin" / "python")
    probe = "import importlib.util as u; print(u.find_spec('pyarrow') and not u.find_spec('odradek'))"
    found = subprocess.run([python, "-c", probe], cwd=directory, env={}, capture_output=True, text=True, check=True)
    assert found.stdout == "True\n", found
    return python
