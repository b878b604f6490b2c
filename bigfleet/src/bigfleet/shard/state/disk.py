"""The data directory on a real disk: files that are whole or untouched.

A file is replaced by writing its successor beside it, flushing that, and renaming it into place;
what is appended is flushed before anybody is told. A write that fails in the middle is undone as
far as the disk allows. Everything is readable by its owner alone.

    DiskError           the directory or a file cannot be read or written
    └── DiskFullError   there is no room left
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from bigfleet_base.files import make_folder

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_OWNER_ONLY: Final = 0o600


class DiskError(OSError):
    """The data directory cannot be used."""


class DiskFullError(DiskError):
    """The data directory has no room left."""


class LocalDisk:
    """Files in one directory. Blocking."""

    def __init__(self, directory: Path) -> None:
        """The directory is made when it is not there."""
        self._directory = directory
        with _named(directory):
            make_folder(directory)

    def read(self, name: str) -> bytes | None:
        """The content of a file, None when there is none."""
        path = self._path(name)
        with _named(path):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                return None

    def replace(self, name: str, content: bytes) -> None:
        """The file has this content and it is flushed, or it has its old content."""
        path = self._path(name)
        successor = path.with_name(f".{name}.new")
        with _named(path):
            try:
                with _opened(successor, os.O_TRUNC) as file:
                    _write_all(file, content)
                    os.fsync(file)
                successor.replace(path)
            except OSError:
                with suppress(OSError):
                    successor.unlink(missing_ok=True)
                raise
            self._flush_names()

    def append(self, name: str, content: bytes) -> None:
        """The content is at the end of the file and flushed. A crash may leave a part of it."""
        path = self._path(name)
        with _named(path):
            is_new = not path.exists()
            with _opened(path, os.O_APPEND) as file:
                size = os.fstat(file).st_size
                try:
                    _write_all(file, content)
                    os.fsync(file)
                except OSError:
                    with suppress(OSError):
                        os.ftruncate(file, size)
                    raise
            if is_new:
                self._flush_names()

    def _path(self, name: str) -> Path:
        if not name or name.startswith(".") or Path(name).name != name:
            raise DiskError(
                f"{name!r} is not a name of a file in {self._directory}: use a plain name"
            )
        return self._directory / name

    def _flush_names(self) -> None:
        directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


@contextmanager
def _opened(path: Path, how: int) -> Iterator[int]:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, _OWNER_ONLY)
    try:
        # A file that a person made by hand may be open to all.
        os.fchmod(file, _OWNER_ONLY)
        yield file
    finally:
        os.close(file)


def _write_all(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFullError(
                f"{path}: no room left: free some space or enlarge the volume; "
                "nothing new is begun until then"
            ) from error
        raise DiskError(
            f"{path}: {error.strerror or error}: the data directory must be writable by this user"
        ) from error
