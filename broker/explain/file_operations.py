"""The hook around the files of a log directory: reports what changes a file, with its path.

The methods of the `Files` of each log directory are shadowed by attributes of that object while the hook is installed,
so an untraced broker calls the methods themselves. Opened files are remembered by descriptor, because writes name only
that. Called on all threads of the broker.

What another hook put around the same object afterwards stays: then this one only passes calls through from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import PurePath
from typing import Any, Final

from odradek.broker.storage.disk.files import UnsyncedFiles
from odradek.broker.storage.log_dir import LogDir

Report = Callable[..., None]
"""Called with the operation, the path, and optionally `position`, `length`, `target` and `error`."""

_BY_PATH: Final = {
    "make_directory": "make directory",
    "fsync_directory": "fsync",
}
_REMOVALS: Final = {"remove": "remove", "remove_directory": "remove directory"}
_SYNCS: Final = ("fsync", "fsync_directory")


class FileTracing:
    """The hook around one log directory. `prefix` is put before its paths: its name, if there are several."""

    def __init__(self, directory: LogDir, prefix: str, report: Report) -> None:
        self._root = directory.path
        self._prefix = prefix
        self._report = report
        self._files: Any = directory.resources.descriptors.files
        self._paths = directory.resources.descriptors.paths()
        self._is_installed = False
        self._shadows: dict[str, tuple[Any, Any]] = {}  # the hook and what it shadows, by name

    def install(self) -> None:
        self._is_installed = True
        hooks: dict[str, Callable[..., Any]] = {
            "open": self._open,
            "close": self._close,
            "pwrite": self._pwrite,
            "truncate": self._truncate,
            "fsync": self._fsync,
            "rename": self._rename,
            **{name: partial(self._by_path, operation) for name, operation in _BY_PATH.items()},
            **{name: partial(self._removal, operation) for name, operation in _REMOVALS.items()},
        }
        for name, hook in hooks.items():
            if name in _SYNCS and isinstance(self._files, UnsyncedFiles):
                continue  # they do nothing
            shadowed = getattr(self._files, name)
            shadow = partial(hook, shadowed)
            self._shadows[name] = shadow, shadowed
            setattr(self._files, name, shadow)

    def remove(self) -> None:
        self._is_installed = False
        for name, (shadow, shadowed) in self._shadows.items():
            if vars(self._files).get(name) is not shadow:
                continue
            if getattr(shadowed, "__self__", None) is self._files:
                delattr(self._files, name)  # the method is found in the class again
            else:
                setattr(self._files, name, shadowed)
        self._shadows.clear()

    def _open(self, function: Callable[..., int], path: str, *, create: bool = False) -> int:
        descriptor = function(path, create=create)
        self._paths[descriptor] = path
        if create:
            self._reported("create", path)
        return descriptor

    def _close(self, function: Callable[[int], None], descriptor: int) -> None:
        self._paths.pop(descriptor, None)  # before another file gets the number
        function(descriptor)

    def _pwrite(self, function: Callable[..., None], descriptor: int, data: Any, position: int) -> None:
        about = {"position": position, "length": len(data)}
        self._run("write", self._path_of(descriptor), partial(function, descriptor, data, position), **about)

    def _truncate(self, function: Callable[..., None], descriptor: int, size: int) -> None:
        self._run("truncate", self._path_of(descriptor), partial(function, descriptor, size), length=size)

    def _fsync(self, function: Callable[..., None], descriptor: int) -> None:
        self._run("fsync", self._path_of(descriptor), partial(function, descriptor))

    def _rename(self, function: Callable[..., None], source: str, target: str) -> None:
        self._run("rename", source, partial(function, source, target), target=self._relative(target))

    def _by_path(self, operation: str, function: Callable[[str], None], path: str) -> None:
        self._run(operation, path, partial(function, path))

    def _removal(self, operation: str, function: Callable[[str], None], path: str) -> None:
        if self._is_installed and not self._files.exists(path):
            function(path)  # most are of files that an interrupted operation may have left
        else:
            self._run(operation, path, partial(function, path))

    def _run(self, operation: str, path: str, function: Callable[[], None], **about: Any) -> None:
        try:
            function()
        except OSError as error:
            self._reported(operation, path, error=error.strerror or str(error), **about)
            raise
        self._reported(operation, path, **about)

    def _reported(self, operation: str, path: str, **about: Any) -> None:
        if self._is_installed:
            self._report(operation, self._relative(path), **about)

    def _path_of(self, descriptor: int) -> str:
        return self._paths.get(descriptor, f"descriptor {descriptor}")

    def _relative(self, path: str) -> str:
        try:
            return f"{self._prefix}{PurePath(path).relative_to(self._root)}"
        except ValueError:
            return path
