"""The modules that become C extensions if ODRADEK_COMPILE=1 is set, which pyproject.toml cannot express.

`build_backend` sets it when pip builds a wheel, `make compile` sets it in a checkout. Without the variable nothing is
compiled, and the package runs on any platform.
"""

import os

from setuptools import setup

# The modules that every Produce and Fetch runs, in the broker and in the client. mypyc drops the keywords of msgspec
# classes, so a module whose classes need one cannot be here; `frozen` and `gc` may be lost, since they only forbid or
# save something. Constants that every request uses are `Final`: mypyc then does not look their names up (20 ns each).
COMPILED = [
    "odradek/broker/metrics/counts/histogram.py",
    "odradek/broker/metrics/counts/metrics.py",
    "odradek/broker/handlers/fetch.py",
    "odradek/broker/handlers/list_offsets.py",
    "odradek/broker/handlers/produce.py",
    "odradek/broker/replication/fetch/available_bytes.py",
    "odradek/broker/replication/fetch/fetch_session.py",
    "odradek/broker/replication/fetch/fetch_sessions.py",
    "odradek/broker/replication/fetch/fetched_records.py",
    "odradek/broker/replication/followers.py",
    "odradek/broker/replication/isr.py",
    "odradek/broker/replication/offset_lookup.py",
    "odradek/broker/replication/appends/log_appender.py",
    "odradek/broker/replication/partition.py",
    "odradek/broker/replication/partitions.py",
    "odradek/broker/replication/replica_state.py",
    "odradek/broker/request/throttled_fetch.py",
    "odradek/broker/server/connection.py",
    "odradek/broker/server/connections.py",
    "odradek/broker/server/dispatch.py",
    "odradek/broker/server/flow_control.py",
    "odradek/broker/server/routes.py",
    "odradek/broker/storage/append/append_info.py",
    "odradek/broker/storage/batch_scan.py",
    "odradek/broker/storage/disk/descriptors.py",
    "odradek/broker/storage/disk/disk_failure.py",
    "odradek/broker/storage/index/index_file.py",
    "odradek/broker/storage/index/offset_index.py",
    "odradek/broker/storage/index/position_cache.py",
    "odradek/broker/storage/index/time_index.py",
    "odradek/broker/storage/index/timestamp_lookup.py",
    "odradek/broker/storage/log.py",
    "odradek/broker/storage/log_file.py",
    "odradek/broker/storage/log_reader.py",
    "odradek/broker/storage/log_slice.py",
    "odradek/broker/storage/producers/batch_replay.py",
    "odradek/broker/storage/producers/partition_producers.py",
    "odradek/broker/storage/producers/producer_state.py",
    "odradek/broker/storage/producers/verification_state.py",
    "odradek/broker/storage/segment.py",
    "odradek/broker/storage/index/segment_indexes.py",
    "odradek/broker/storage/segmented_log.py",
    "odradek/broker/storage/segments.py",
    "odradek/broker/storage/append/validation.py",
    "odradek/client/producer/record_accumulator.py",
    "odradek/client/consumer/completed_fetch.py",
    "odradek/client/producer/partition_queue.py",
    "odradek/client/producer/partitioner.py",
    "odradek/protocol/records/batch_builder.py",
    "odradek/protocol/records/batch_header.py",
    "odradek/protocol/code_generation/codec_parts.py",
    "odradek/protocol/framing.py",
    "odradek/protocol/header.py",
    "odradek/protocol/uvarint.py",
    "odradek/protocol/records/record_headers.py",
    "odradek/protocol/records/record_iterator.py",
    "odradek/protocol/records/record_runs.py",
    "odradek/protocol/records/record_search.py",
    "odradek/protocol/varint.py",
]

if os.environ.get("ODRADEK_COMPILE") == "1":
    from mypyc.build import mypycify

    # One library for each package, so that a client does not map the broker's code.
    libraries = [
        ([path for path in COMPILED if path.startswith(f"odradek/{package}/")], f"odradek_{package}")
        for package in ("protocol", "client", "broker")
    ]
    opt_level = os.environ.get("MYPYC_OPT_LEVEL", "3")  # 0 is for a test of the build, which needs no line numbers
    debug_level = "0" if opt_level == "0" else "1"
    setup(ext_modules=mypycify(COMPILED, opt_level=opt_level, debug_level=debug_level, separate=libraries))
else:
    setup()
