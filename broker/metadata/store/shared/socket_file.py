"""The file of a Unix socket: private, with one owner, and in a directory whose path may be long.

Only its user may connect: mode 0600. A file without a listening process is replaced, so that a killed owner leaves no
obstacle. A lock on the directory (`flock`, held for the moment of a start only) keeps two processes that start together
from replacing each other's file.

The address of a Unix socket has at most 107 bytes on Linux, and 103 on macOS. For a longer path Linux takes one through
a descriptor of the directory, `/proc/self/fd/<descriptor>/<name>`; elsewhere it is an error that says so.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from odradek.broker.metadata.store.store import StoreFailedError

BACKLOG: Final = 512
"""Connections that the kernel accepts ahead of the server."""

_MOST_ADDRESS_BYTES: Final = 107 if sys.platform == "linux" else 103
_DESCRIPTORS: Final = Path("/proc/self/fd")
_PRIVATE: Final = stat.S_IRUSR | stat.S_IWUSR
_NOT_FOR_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class ListeningSocket:
    """A socket that listens at `path`. Raises `StoreFailedError` if another process does, or if that is impossible."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _locked(path.parent):
                _remove_stale(path)
                self._identity = _bind(self.socket, path)
                self.socket.listen(BACKLOG)
        except OSError as error:
            self.socket.close()
            raise StoreFailedError(f"cannot listen at {path}: {error.strerror or error}") from error
        except BaseException:
            self.socket.close()
            raise

    def remove_file(self) -> None:
        """Remove the file, unless it is another process's by now."""
        try:
            if _identity(self._path) == self._identity:
                self._path.unlink()
        except FileNotFoundError:
            pass


def connect(path: Path) -> socket.socket:
    """Return a non-blocking socket that is connected to the one at `path`. Raises `OSError`, `StoreFailedError`."""
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connected.setblocking(False)  # a full backlog then is BlockingIOError
        with _address(path) as address:
            connected.connect(address)
    except BaseException:
        connected.close()
        raise
    return connected


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise StoreFailedError(f"another process starts to serve metadata in {directory}") from None
    finally:
        os.close(descriptor)


def _remove_stale(path: Path) -> None:
    """Remove the socket of a process that has ended. Raises `StoreFailedError` for one that lives, and other files."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise StoreFailedError(f"{path} is no socket: remove it")
        connect(path).close()
    except FileNotFoundError:
        return
    except ConnectionRefusedError:
        path.unlink()
        return
    except BlockingIOError:
        pass  # its backlog is full
    raise StoreFailedError(f"another process serves the metadata at {path}")


def _bind(listening: socket.socket, path: Path) -> tuple[int, ...]:
    """Create the file; at no moment may others connect. Returns its identity."""
    with _address(path) as address:
        # The owner's bits stay: another thread may be creating a directory.
        before = os.umask(_NOT_FOR_OTHERS)
        try:
            listening.bind(address)
        finally:
            os.umask(before)
    path.chmod(_PRIVATE)
    return _identity(path)


def _identity(path: Path) -> tuple[int, ...]:
    status = path.lstat()
    return status.st_dev, status.st_ino, status.st_ctime_ns  # the number of a removed file is used again


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """The address of `path`, valid within the block. Raises `StoreFailedError` if there is none."""
    length = len(os.fsencode(path))
    if length <= _MOST_ADDRESS_BYTES:
        yield str(path)
        return
    if not _DESCRIPTORS.exists():
        raise StoreFailedError(
            f"{path} has {length} bytes, and the path of a socket at most {_MOST_ADDRESS_BYTES}: use a shorter log.dirs"
        )
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield str(_DESCRIPTORS / str(descriptor) / path.name)
    finally:
        os.close(descriptor)
