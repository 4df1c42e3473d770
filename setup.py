"""What pyproject.toml cannot say: which modules become C extensions, if ODRADEK_COMPILE=1 asks for that.

    ODRADEK_COMPILE=1 pip install .

needs a C compiler. Without the variable nothing is compiled, and the package runs on any platform.
"""

import os
import tomllib
from pathlib import Path

from setuptools import setup

# What every Produce and Fetch runs. A module whose msgspec classes need a keyword (other than `frozen` and `gc`, which
# forbid or save something) cannot be here: mypyc drops them.
COMPILED = [
    "broker/histogram.py",
    "broker/handlers/fetch.py",
    "broker/handlers/produce.py",
    "broker/replication/log_appender.py",
    "broker/replication/partition.py",
    "broker/server/connection.py",
    "broker/server/dispatch.py",
    "broker/server/flow_control.py",
    "broker/server/routes.py",
    "broker/storage/descriptors.py",
    "broker/storage/known_positions.py",
    "broker/storage/log.py",
    "broker/storage/log_file.py",
    "broker/storage/log_reader.py",
    "broker/storage/log_slice.py",
    "broker/storage/segment.py",
    "broker/storage/segment_indexes.py",
    "broker/storage/segmented_log.py",
    "broker/storage/segments.py",
    "broker/storage/validation.py",
    "protocol/batch_header.py",
    "protocol/framing.py",
    "protocol/header.py",
]


def needed_to_compile() -> list[str]:
    """The compiler, in the release that checks the types, and what the modules import: it looks at types there, too."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    [mypyc] = [each for each in project["optional-dependencies"]["dev"] if each.startswith("mypy==")]
    return [mypyc, *project["dependencies"]]


if os.environ.get("ODRADEK_COMPILE") != "1":
    setup()
else:
    try:
        from mypyc.build import mypycify
    except ImportError:  # pip asks what is needed, and comes back with it
        setup(setup_requires=needed_to_compile())
    else:
        setup(ext_modules=mypycify(COMPILED, opt_level="3"))
