"""The speed of decoding batches into Arrow columns, and of encoding: `python -m benchmarks.pipeline_records`.

Millions of records a second of one core's time, the best of seven rounds, all columns with headers, checksums verified.
Records have keys of 8 bytes and values of `--value` bytes, of which half are random. A producer that fills 16 KiB makes
batches of 140 records.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from functools import partial
from time import process_time

import pyarrow as pa

from odradek.pipeline.records.decoding import decode
from odradek.pipeline.records.encoding import encode_batch
from odradek.pipeline.records.whole_batches import whole_batches
from odradek.pipeline.schema import column_names
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.records.batch_header import assign_offsets

ROUNDS = 7
MOST_BATCHES = 5000  # of one case: building batches of one record is slow
NOW = 1_700_000_000_000
EVERYTHING = column_names(include_headers=True)


def million_a_second(count: int, work: Callable[[], int]) -> float:
    """Return the rate of the best round; `work` returns its number of records."""
    times = []
    for _ in range(ROUNDS):
        start = process_time()
        assert work() == count
        times.append(process_time() - start)
    return count / min(times) / 1e6


def payloads(count: int, value: int, *, varied: bool) -> tuple[pa.Array, pa.Array]:
    """Return keys and values; with `varied` no two neighbours have the same length."""
    chance = random.Random(1)
    sizes = [chance.randrange(value // 2, value * 3 // 2) if varied else value for _ in range(count)]
    values = [chance.randbytes(size // 2) + b"x" * (size - size // 2) for size in sizes]
    return pa.array([b"%08d" % i for i in range(count)], pa.binary()), pa.array(values, pa.binary())


def batches(keys: pa.Array, values: pa.Array, records: int, codec: Codec) -> bytes:
    """Return the records in batches of `records`."""
    out = bytearray()
    for start in range(0, len(keys), records):
        stamps = pa.array(range(NOW + start, NOW + min(start + records, len(keys))))
        part = slice(start, start + records)
        batch = bytearray(encode_batch(keys[part], values[part], timestamp=stamps, codec=codec))
        assign_offsets(batch, 0, start, 0)
        out += batch
    return bytes(out)


def decoded(raw: bytes) -> int:
    return sum(found.num_rows for found in decode(whole_batches(raw), topic="t", partition=0, columns=EVERYTHING))


def encoded(keys: pa.Array, values: pa.Array, codec: Codec) -> int:
    for start in range(0, len(keys), 2000):
        part = slice(start, start + 2000)
        encode_batch(keys[part], values[part], timestamp=NOW, codec=codec)
    return len(keys)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--records", type=int, default=200_000)
    arguments.add_argument("--value", type=int, default=100)
    chosen = arguments.parse_args()
    print(f"{'decode':30} {'M records/s':>12} {'MB/s':>8}")
    for varied in (False, True):
        every_key, every_value = payloads(chosen.records, chosen.value, varied=varied)
        cases = [(records, Codec.NONE) for records in (1, 10, 140, 1000, 9000)]
        cases += [(140, codec) for codec in Codec if codec and not varied]
        for records, codec in cases:
            count = min(chosen.records, records * MOST_BATCHES)
            keys, values = every_key[:count], every_value[:count]
            raw = batches(keys, values, records, codec)
            rate = million_a_second(count, partial(decoded, raw))
            name = f"{codec.name.lower()}, {records} a batch{', varied' if varied else ''}"
            print(f"{name:30} {rate:12.2f} {rate * (keys.nbytes + values.nbytes) / count:8.0f}", flush=True)
    print(f"{'encode':30}")
    keys, values = payloads(chosen.records, chosen.value, varied=True)
    for codec in Codec:
        rate = million_a_second(chosen.records, partial(encoded, keys, values, codec))
        print(f"{codec.name.lower() + ', 2000 a batch':30} {rate:12.2f}", flush=True)


if __name__ == "__main__":
    main()
