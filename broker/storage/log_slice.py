"""A range of bytes of a segment file for sending: not yet read or copied, and its file stays open until release."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

from odradek.broker.storage.disk.descriptors import Descriptor, DescriptorCache
from odradek.broker.storage.index.position_cache import PositionCache


class LogSlice:
    """`length` bytes from `position` of a segment file: whole batches, but the last one may be cut off.

    The bytes never change, and the file stays open until `release`, also if the segment is deleted meanwhile. So every
    slice must be released; a second release does no harm. An empty slice has no file. The transport needs `len` and
    `fileno` to send the slice with `sendfile`.
    """

    __slots__ = ("_descriptor", "_descriptors", "_positions", "length", "position", "segment_base_offset")

    def __init__(
        self,
        descriptors: DescriptorCache | None,
        descriptor: Descriptor | None,
        position: int,
        length: int,
        segment_base_offset: int = -1,
        positions: PositionCache | None = None,
    ) -> None:
        self.position = position
        self.length = length
        self.segment_base_offset = segment_base_offset
        self._descriptors = descriptors
        self._descriptor = descriptor
        self._positions = positions

    def __len__(self) -> int:
        return self.length

    def fileno(self) -> int:
        """The descriptor to read from at `position`. Raises `ValueError` for an empty or released slice."""
        if self._descriptor is None:
            raise ValueError("the slice is empty or was released")
        return self._descriptor.number

    def is_of(self, path: str) -> bool:
        """Whether `path` still names the slice's file: it was not renamed or replaced meanwhile."""
        return self._descriptor is not None and self._descriptor.retained and self._descriptor.path == path

    def read(self) -> bytes:
        """All bytes of the slice. Raises `OSError` if the disk fails."""
        descriptors, descriptor = self._descriptors, self._descriptor
        if not self.length or descriptors is None:
            return b""
        if descriptor is None:
            raise ValueError("the slice was released")
        data = descriptors.files.pread(descriptor.number, self.length, self.position)
        if self._positions is not None:
            self._positions.put_next(data, self.position)
        return data

    def read_start(self, length: int) -> bytes:
        """Up to `length` bytes from the start of the slice. Raises as `read`."""
        if not self.length or self._descriptors is None:
            return b""
        return self._descriptors.files.pread(self.fileno(), min(length, self.length), self.position)

    def release(self) -> None:
        """Unpin the file. The slice cannot be read any more."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None and self._descriptors is not None:
            self._descriptors.unpin(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


EMPTY_SLICE: Final = LogSlice(None, None, 0, 0)
