"""Files that people name on the command line: written whole, and never over another unless told to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from ..errors import ConflictError, InvalidInputError, NotFoundError


def check_free(path: str, *, replace: bool) -> None:
    """ConflictError where a file is there that may not be replaced; InvalidInputError for a folder."""
    if os.path.isdir(path):
        raise InvalidInputError("is-folder", f"{path} is a folder", hint="name a file")
    if not replace and os.path.lexists(path):
        raise _taken(path)


@contextmanager
def whole_file(path: str, *, replace: bool) -> Iterator[BinaryIO]:
    """A new file under another name, given its own when all of it is written and durable."""
    from ..storage.disk import TEMP_PREFIX, OsDisk

    check_free(path, replace=replace)
    folder, name = os.path.split(path)
    temp = os.path.join(folder, f"{TEMP_PREFIX}{os.getpid()}-{name}"[:200])
    disk = OsDisk()
    try:
        handle = disk.create(temp)
    except OSError as e:
        raise _not_made(path, folder or ".", e) from e
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            disk.sync(file.fileno())
        if replace:
            disk.rename(temp, path)
        else:
            try:
                disk.link(temp, path)
            except FileExistsError as e:
                raise _taken(path) from e
        disk.sync_dir(folder)
    finally:
        with suppress(FileNotFoundError):
            disk.unlink(temp)


def _not_made(path: str, folder: str, error: OSError) -> OSError | NotFoundError:
    """Told of the file that was asked for, not of the one beside it that becomes it."""
    if isinstance(error, FileNotFoundError):
        return NotFoundError("no-file", f"there is no folder {folder}", hint="make it, or name another file")
    return OSError(error.errno, error.strerror, path)


def _taken(path: str) -> ConflictError:
    return ConflictError("file-exists", f"{path} is there already", hint="--force takes its place")
