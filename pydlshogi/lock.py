"""A lock against two runs that write the same files.

The lock is advisory: only runs that call :func:`lock_outputs` respect it. The system
releases it when the process ends, also after a kill.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from pydlshogi.errors import UserError

#: Seconds that another run may take between its lock and the file that names it.
_PATIENCE = 0.5

#: What a file system without locks answers, for example a network drive without a lock service.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


# What the file that names a run holds.
_OWNER = re.compile(r"process [0-9]+ on [\w.-]+")
_LONGEST = 300


class LockedError(UserError):
    """Another run writes the same file; its owner is what :func:`lock_outputs` has noted."""

    def __init__(self, path: str | os.PathLike[str], owner: str) -> None:
        super().__init__(
            f"another run{f' ({owner})' if owner else ''} is writing {os.fspath(path)}. "
            "Wait until it ends, stop it, or give this run other output files."
        )


@contextlib.contextmanager
def lock_outputs(*paths: str | os.PathLike[str]) -> Iterator[None]:
    """Keeps other runs from writing the same files until the block ends.

    Beside a file ``NAME`` it makes ``.NAME.lock`` and ``.NAME.owner``, and removes both at
    the end. Those of a killed run lock nothing. A link shares the lock of its target; empty paths
    are skipped.

    Raises:
        LockedError: Another run writes one of the files; the text names its process.
        OSError: The lock file cannot be made.
    """
    with contextlib.ExitStack() as stack:
        for real in dict.fromkeys(os.path.realpath(path) for path in paths if os.fspath(path)):
            stack.enter_context(_lock(Path(real)))
        yield


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Locks one file."""
    import filelock

    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"), timeout=0)
    owner = path.with_name(f".{path.name}.owner")
    try:
        # In a folder that others write to, a link would lead to another file.
        if os.path.islink(lock.lock_file):
            raise OSError(errno.ELOOP, "it is a link; remove it", lock.lock_file)
        lock.acquire()
    except filelock.Timeout:
        raise LockedError(path, _read_owner(owner)) from None
    except (NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_LOCKS:
            raise
        _remove(Path(lock.lock_file))
        yield
        return
    try:
        with contextlib.suppress(OSError):  # a full disk is reported with the first output
            _remove(owner)
            with owner.open("x", encoding="utf-8") as file:
                file.write(f"process {os.getpid()} on {socket.gethostname()}")
        yield
    finally:
        _remove(owner)
        if os.name != "nt":  # there filelock removes the file, and nobody can before
            _remove(Path(lock.lock_file))
        lock.release()


def _read_owner(path: Path) -> str:
    """Reads which process holds a lock; empty if it has not written that soon."""
    end = time.monotonic() + _PATIENCE
    while True:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if path.is_symlink() or path.exists() and not path.is_file():
                return ""
            with path.open(encoding="utf-8") as file:
                text = file.read(_LONGEST)
            if _OWNER.fullmatch(text):
                return text
        if time.monotonic() > end:
            return ""
        time.sleep(0.01)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
