"""The build backend: a wheel with the hottest modules compiled where that works, in plain Python where it does not.

| ODRADEK_COMPILE | a wheel: `pip install .`, of a repository, of a source distribution | `pip install -e .` |
|---|---|---|
| not set | compiled if there is a C compiler with Python's headers and compiling succeeds; else plain | plain |
| 0 | plain | plain |
| 1 | compiled, or an error | plain |

It makes this decision and calls setuptools' backend for the rest; setup.py lists the modules to compile. setup.py reads
the same variable, so this module removes it from the environment and sets it only while it builds a compiled wheel. pip
prints the reason for a plain wheel only with `-v`; afterwards `odradek broker --version` prints
which of the two is installed.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from setuptools import Distribution, Extension, build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_VARIABLE = "ODRADEK_COMPILE"
_ASKED_FOR = os.environ.pop(_VARIABLE, "")


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return what pip installs before it builds a wheel: setuptools; to compile, also mypy and our own requirements.

    The compiler is part of mypy; the release is the one that checks our types. It reads the types of imported packages.
    google-re2 is left out: it has no types, and where there is no wheel of it, as with musl, it needs a library of C++.
    """
    required = build_meta.get_requires_for_build_wheel(config_settings)
    if _reason_for_plain():
        return required
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    [mypy] = [each for each in project["optional-dependencies"]["dev"] if each.startswith("mypy==")]
    return [*required, mypy, *(each for each in project["dependencies"] if not each.startswith("google-re2"))]


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build a wheel in `wheel_directory` and return its name. Raises what setuptools raises."""
    reason = _reason_for_plain()
    if not reason:
        os.environ[_VARIABLE] = "1"
        try:
            return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
        except (Exception, SystemExit) as error:
            if _ASKED_FOR == "1":
                raise
            reason = f"compiling failed: {error}"
        finally:
            del os.environ[_VARIABLE]
    print(f"odradek: built as plain Python, which is slower: {reason}", file=sys.stderr)
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def _reason_for_plain() -> str:
    """Return why the wheel will be plain Python; empty if the build should try to compile."""
    if _ASKED_FOR == "1":
        return ""
    if _ASKED_FOR == "0":
        return f"{_VARIABLE}=0 asks for it"
    if sys.platform == "win32":
        return "on Windows it does not run"
    if platform.python_implementation() != "CPython":
        return "only modules of CPython can be compiled"
    return "" if _can_compile() else "there is no C compiler that finds Python.h"


def _can_compile() -> bool:
    """Return whether the C compiler that setuptools would use can compile a module of two lines."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "probe.c")
        source.write_text("#include <Python.h>\nPyMODINIT_FUNC PyInit_probe(void) { return NULL; }\n")
        probe = Distribution({"ext_modules": [Extension("probe", [str(source)])]}).get_command_obj("build_ext")
        probe.build_lib = probe.build_temp = directory
        probe.ensure_finalized()
        try:
            probe.run()
        except Exception:  # noqa: BLE001 - no compiler, no headers, a linker that fails: all mean the same
            return False
    return True
