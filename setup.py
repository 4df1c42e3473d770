"""What pyproject.toml cannot say: which modules become C extensions, if ODRADEK_COMPILE=1 asks for that.

`build_backend` asks when pip builds a wheel, `make compile` asks in a checkout. Without the variable nothing is
compiled, and the package runs on any platform.
"""

import os

from setuptools import setup

# What every Produce and Fetch runs, in the broker and in the client. A module whose msgspec classes need a keyword
# (other than `frozen` and `gc`, which forbid or save something) cannot be here: mypyc drops them. Constants are `Final`
# where they are used for every request: then mypyc knows their values, or where they are, and looks no name up (20 ns).
COMPILED = [
    "broker/metrics/histogram.py",
    "broker/metrics/metrics.py",
    "broker/handlers/fetch.py",
    "broker/handlers/produce.py",
    "broker/replication/fetch_session.py",
    "broker/replication/fetch_sessions.py",
    "broker/replication/log_appender.py",
    "broker/replication/partition.py",
    "broker/replication/partitions.py",
    "broker/server/connection.py",
    "broker/server/connections.py",
    "broker/server/dispatch.py",
    "broker/server/flow_control.py",
    "broker/server/routes.py",
    "broker/storage/append_info.py",
    "broker/storage/batch_scan.py",
    "broker/storage/descriptors.py",
    "broker/storage/disk_failure.py",
    "broker/storage/known_positions.py",
    "broker/storage/log.py",
    "broker/storage/log_file.py",
    "broker/storage/log_reader.py",
    "broker/storage/log_slice.py",
    "broker/storage/partition_producers.py",
    "broker/storage/producer_entry.py",
    "broker/storage/producer_state.py",
    "broker/storage/segment.py",
    "broker/storage/segment_indexes.py",
    "broker/storage/segmented_log.py",
    "broker/storage/segments.py",
    "broker/storage/validation.py",
    "client/accumulator.py",
    "client/fetched.py",
    "client/partition_queue.py",
    "client/partitioner.py",
    "protocol/batch_builder.py",
    "protocol/batch_header.py",
    "protocol/codec_parts.py",
    "protocol/framing.py",
    "protocol/header.py",
    "protocol/primitives.py",
    "protocol/record_headers.py",
    "protocol/record_iterator.py",
    "protocol/record_runs.py",
    "protocol/varint.py",
]

if os.environ.get("ODRADEK_COMPILE") == "1":
    from mypyc.build import mypycify

    # A library each, so that a client does not map the broker's code.
    libraries = [
        ([path for path in COMPILED if path.startswith(f"{package}/")], package)
        for package in ("protocol", "client", "broker")
    ]
    setup(ext_modules=mypycify(COMPILED, opt_level="3", separate=libraries))
else:
    setup()
