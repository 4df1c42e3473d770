"""Conversion between numpy and Arrow without pandas.

`pa.array`, `pa.scalar` and `to_numpy` import pandas. That costs a worker's first task 0.3 s of processor time, and adds
34,000 objects to every garbage collection. The functions here create arrays over existing buffers. Both libraries then
share a buffer, which must not change afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Booleans = npt.NDArray[np.bool_]


def number_array(numbers: npt.NDArray[Any], is_null: Booleans | None = None) -> Any:
    """Return an Arrow array of the same type, with nulls where `is_null` is true."""
    validity = None if is_null is None or not np.count_nonzero(is_null) else _bits(~is_null)
    buffers = [validity, pa.py_buffer(np.ascontiguousarray(numbers))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), buffers)


def boolean_array(booleans: Booleans) -> Any:
    """Return an Arrow array of booleans, one bit each."""
    return pa.Array.from_buffers(pa.bool_(), len(booleans), [None, _bits(booleans)])


def number_scalar(number: int) -> Any:
    """Return an Arrow scalar of int32."""
    return number_array(np.array([number], dtype=np.int32))[0]


def binary_scalar(value: bytes) -> Any:
    """Return an Arrow scalar of binary."""
    bounds = np.array([0, len(value)], dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(bounds), pa.py_buffer(value)])[0]


def numbers_of(array: Any) -> npt.NDArray[Any]:
    """Return an Arrow array without nulls as a numpy array."""
    if pa.types.is_boolean(array.type):
        return numbers_of(array.cast(pa.uint8())).view(np.bool_)
    dtype = np.dtype(array.type.to_pandas_dtype())
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def _bits(booleans: Booleans) -> Any:
    return pa.py_buffer(np.packbits(booleans, bitorder="little"))
