"""Conversions between numpy and Arrow equal those of pyarrow and do not import pandas."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipeline.records.arrow_values import binary_scalar, boolean_array, number_array, number_scalar, numbers_of

# The work of a task that reads, and of a task that writes.
_ROUND_TRIP = """
import sys
import numpy as np
import pyarrow as pa
import odradek.pipeline.writing.sink
from odradek.pipeline.records.arrow_values import binary_scalar, number_array
from odradek.pipeline.writing.batches import Rows
from odradek.pipeline.records.encoding import encode_batch
from odradek.pipeline.writing.partitioning import partitions_of_keys
from odradek.pipeline.records.decoding import decode
from odradek.pipeline.records.whole_batches import whole_batches
from odradek.pipeline.schema import HEADERS_TYPE, column_names

ones = pa.repeat(binary_scalar(b"1"), 2)
keys = ones.take(number_array(np.arange(2), np.array([True, False])))
entries = pa.StructArray.from_arrays([ones.cast(pa.string()), ones], fields=list(HEADERS_TYPE.value_type))
headers = pa.ListArray.from_arrays(number_array(np.arange(3, dtype=np.int32)), entries, type=HEADERS_TYPE)
rows = Rows(keys, ones, headers).take(partitions_of_keys(keys, 2).argsort())
assert rows.sizes().min() > 16
for some in (rows.headers, None):
    batch = encode_batch(rows.keys, rows.values, some, timestamp=1)
    columns = column_names(include_headers=some is not None)
    [read] = decode(whole_batches(batch), topic="t", partition=0, columns=columns, start_offset=0, end_offset=2)
    assert read.num_rows == 2
print("pandas" in sys.modules)
"""


@pytest.mark.process
def test_neither_reading_nor_writing_imports_pandas() -> None:
    pytest.importorskip("pyspark")
    found = subprocess.run([sys.executable, "-c", _ROUND_TRIP], capture_output=True, text=True, timeout=60, check=False)
    assert (found.stdout, found.stderr) == ("False\n", "")


@given(st.lists(st.tuples(st.integers(-(1 << 31), (1 << 31) - 1), st.booleans())), st.sampled_from(["int32", "int64"]))
def test_arrays_equal_those_of_pyarrow(pairs: list[tuple[int, bool]], dtype: str) -> None:
    numbers = np.array([number for number, _ in pairs], dtype=dtype)
    is_null = np.array([null for _, null in pairs], dtype=np.bool_)
    assert_same(number_array(numbers), pa.array(numbers))
    assert_same(number_array(numbers, is_null), pa.array(numbers, mask=is_null))
    assert_same(boolean_array(is_null), pa.array(is_null))
    for whole in (pa.array(numbers), pa.array(is_null)):
        assert numbers_of(whole).tolist() == whole.to_pylist()
        assert numbers_of(whole[1:]).tolist() == whole[1:].to_pylist()


def test_scalars_equal_those_of_pyarrow() -> None:
    assert number_scalar(-1).equals(pa.scalar(-1, pa.int32()))
    assert [binary_scalar(value).equals(pa.scalar(value)) for value in (b"", b"\0a")] == [True, True]


def test_strided_arrays_are_converted() -> None:
    numbers: npt.NDArray[np.int64] = np.arange(10)[::3]
    assert number_array(numbers).to_pylist() == [0, 3, 6, 9]


def assert_same(ours: Any, theirs: Any) -> None:
    ours.validate(full=True)
    assert ours.type == theirs.type
    assert ours.equals(theirs)
    assert ours.null_count == theirs.null_count
