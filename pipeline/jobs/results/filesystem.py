"""Operations on directories of any file system that Spark supports, such as HDFS or S3.

PySpark reaches Hadoop's file systems only through its private gateway to the JVM.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ATOMIC: Final = {"file", "hdfs", "viewfs", "abfs", "abfss"}  # object stores copy a directory file by file


class FileSystem:
    """The file system of a directory. Paths are relative to the directory, and "" is the directory itself."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - see the module
        configuration = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - see the module
        self._jvm = jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        self._root = self._path(directory)
        self._files = self._root.getFileSystem(configuration)
        self.directory = directory.rstrip("/")

    def parent(self) -> tuple[str, str]:
        """Return the directory that contains this one, as an absolute path, and the name; ("", "") for a root."""
        path = self._files.makeQualified(self._root)
        above = path.getParent()
        return ("", "") if above is None else (str(above.toString()), str(path.getName()))

    def local_path(self) -> str | None:
        """Return the path of this directory on this machine, None if it is in another file system."""
        path = self._files.makeQualified(self._root).toUri()
        return str(path.getPath()) if path.getScheme() == "file" else None

    def renames_atomically(self) -> bool:
        """Whether this directory can be renamed in one step: not in an object store, and not if it is a mount point."""
        path = self._files.makeQualified(self._root).toUri()
        return path.getScheme() in _ATOMIC and not (path.getScheme() == "file" and os.path.ismount(path.getPath()))

    def exists(self, path: str = "") -> bool:
        return bool(self._files.exists(self._at(path)))

    def names(self, path: str = "") -> list[str]:
        """Return the names in a directory, in order; none if it does not exist."""
        if not self.exists(path):
            return []
        return sorted(status.getPath().getName() for status in self._files.listStatus(self._at(path)))

    def files(self, path: str = "") -> list[str]:
        """Return the paths of all files below a directory, relative to it."""
        if not self.exists(path):
            return []
        found = self._files.listFiles(self._at(path), True)
        root = self._files.resolvePath(self._at(path)).toUri().getPath().rstrip("/")
        paths = []
        while found.hasNext():
            paths.append(found.next().getPath().toUri().getPath().removeprefix(f"{root}/"))
        return sorted(paths)

    def read(self, path: str) -> str:
        stream = self._files.open(self._at(path))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """Write a small file atomically."""
        temporary = self._at(f"{path}.tmp")
        stream = self._files.create(temporary, True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()
        self._files.delete(self._at(path), False)
        if not self._files.rename(temporary, self._at(path)):
            raise OSError(f"cannot write {self.directory}/{path}")

    def move(self, path: str, to: str) -> None:
        """Rename a file or a directory to a path that does not exist; create the directories of the new path."""
        self._files.mkdirs(self._at(to).getParent())
        if not self._files.rename(self._at(path), self._at(to)):
            raise OSError(f"cannot move {self.directory}/{path} to {to}")

    def delete(self, path: str = "") -> None:
        """Delete a file, or a directory with everything in it, if it exists."""
        self._files.delete(self._at(path), True)

    def _at(self, path: str) -> Any:
        return self._path(self._root, path) if path else self._root
