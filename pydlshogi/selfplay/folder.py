"""The folder of the games: files of finished games, and who plays which number.

=====================  ======================================================================
``selfplay.json``      the seed; marks the folder as one of self-play
``NAME.hcpe3``         games; ``NAME.hcpe3.part`` while a process appends to it
``NAME.tsv``           a line for each game in it (:class:`Row`)
``claims/PROCESS``     the numbers that a living process plays or has played
``records/``           some of the games as CSA files and pages
=====================  ======================================================================

NAME is that of the model, the process and a number. The line of a game follows its bytes, and says
where they end. So bytes without a line are an incomplete tail, and the next process that opens the
folder cuts it off. A process that was killed leaves claims without a lock, and its numbers are
played again.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import filelock

from pydlshogi.errors import UserError
from pydlshogi.files import replace, write_beside
from pydlshogi.kifu.sources import SELF_PLAY_MARK
from pydlshogi.lock import LockedError, lock_outputs

FINISHED, PART, TABLE = ".hcpe3", ".hcpe3.part", ".tsv"

#: Seconds that a process waits for the lock of the folder.
_PATIENCE = 60

#: Seconds after which the process of another host, whose lock may not be seen here, counts as dead
#: if it does not touch its claims.
_SILENCE = 3600


class FolderError(UserError):
    """The folder cannot be used."""


class Row(NamedTuple):
    """A finished game, a line of a table.

    Attributes:
        winner: ``black``, ``white`` or ``draw``.
        resigned: The side that resigned, or would have; ``-`` if none.
    """

    end_byte: int
    game: int
    start: str
    plies: int
    winner: str
    end: str
    targets: int
    evaluations: int
    resigned: str
    seconds: float

    def line(self) -> bytes:
        """Formats the line."""
        return ("\t".join(map(str, self)) + "\n").encode("ascii")


#: The columns of the tables, and their kinds.
COLUMNS = Row._fields
_KINDS = (int, int, str, int, str, str, int, int, str, float)
_HEAD = ("\t".join(COLUMNS) + "\n").encode("ascii")


class Tables:
    """The games of a folder, as its tables list them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: dict[Path, list[Row]] = {}
        self._ended: set[Path] = set()

    def rows(self) -> list[Row]:
        """Returns the finished games of all processes, file by file.

        Raises:
            FolderError: a file of games is shorter than its table says.
        """
        for table in sorted({*self.path.glob(f"*{TABLE}")} - self._ended):
            games = table.with_suffix(FINISHED)
            if games.exists():
                self._ended.add(table)  # nothing is appended after its file was renamed
            rows = self._read[table] = _read(table)
            if table in self._ended and rows and games.stat().st_size < rows[-1].end_byte:
                raise FolderError(
                    f"{games} is cut short: it has {games.stat().st_size} of {rows[-1].end_byte} "
                    f"bytes. Copy it again; or remove it and {table.name}, then its games are "
                    "played again."
                )
        return [row for rows in self._read.values() for row in rows]

    def of_files(self) -> dict[Path, list[Row]]:
        """Returns the games of each finished file."""
        self.rows()
        found = {table.with_suffix(FINISHED): rows for table, rows in self._read.items()}
        return {path: rows for path, rows in found.items() if rows and path.exists()}


class GameFolder(Tables):
    """A folder of games, open for one process that plays some of them; it is made if necessary.

    A file holds ``games_a_file`` games. Raises FolderError if the folder has other files, or games
    of another seed than ``seed``.
    """

    def __init__(self, path: Path, seed: int, games_a_file: int = 500) -> None:
        super().__init__(path)
        self._seed = seed
        self._games_a_file = games_a_file
        self._host = re.sub(r"[^A-Za-z0-9]+", "_", socket.gethostname())
        self._process = f"{self._host}-{os.getpid()}-{secrets.token_hex(2)}"
        self._claims = path / "claims" / self._process
        self._part: _Part | None = None
        self._files = 0
        self._stack = contextlib.ExitStack()
        self._closed = threading.Event()

    def __enter__(self) -> GameFolder:
        self._claims.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            self._check()
            self._claims.touch()
            self._stack.enter_context(lock_outputs(self._claims))
            for claims in self._of_others(alive=False):
                for part in self.path.glob(f"*.{claims.name}.*{PART}"):
                    _finish(part)
                claims.unlink(missing_ok=True)
        threading.Thread(target=self._touch_claims, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._closed.set()
        self.finish_file()
        self._stack.close()
        with contextlib.suppress(OSError):
            self._claims.unlink()

    def claim(self, most: int, until: int) -> list[int]:
        """Claims numbers of games, at most ``most`` and up to ``until``, and returns them.

        No living process plays or has played them.
        """
        with self._locked():
            taken = {row.game for row in self.rows()}
            for claims in (self._claims, *self._of_others(alive=True)):
                with contextlib.suppress(FileNotFoundError):  # the other process has just ended
                    taken.update(map(int, claims.read_text().split()))
            free = (number for number in range(1, until + 1) if number not in taken)
            numbers = [number for number, _ in zip(free, range(most))]
            with self._claims.open("a") as file:
                file.write("".join(f"{number}\n" for number in numbers))
        return numbers

    def add(self, model: str, game: bytes, row: Row) -> None:
        """Appends the bytes of a finished game, and its line, whose ``end_byte`` is set here.

        ``model`` is the name of the model, which is part of the name of the file.
        """
        if self._part and (self._part.model != model or self._part.games == self._games_a_file):
            self.finish_file()
        if not self._part:
            self._files += 1
            name = f"{model}.{self._process}.{self._files:04}"
            self._part = _Part(self.path / name, model)
        self._part.add(game, row)

    def finish_file(self) -> None:
        """Renames the present file, so that a training reads it."""
        if self._part:
            self._part.finish()
            self._part = None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with filelock.FileLock(self.path / ".lock", timeout=_PATIENCE):
                yield
        except filelock.Timeout:
            raise FolderError(
                f"another process has locked {self.path} for more than {_PATIENCE} seconds. Wait "
                "until it goes on, or stop it."
            ) from None

    def _check(self) -> None:
        """Checks that the folder is one of self-play with the same seed, or an empty one."""
        mark, line = self.path / SELF_PLAY_MARK, json.dumps({"seed": self._seed})
        if not mark.exists():
            foreign = {path.name for path in self.path.glob("[!.]*")} - {"claims"}
            if foreign:
                raise FolderError(
                    f"{self.path} has files of something else, such as {min(foreign)}. Choose a "
                    "new folder for the games."
                )
            with write_beside(mark) as file:
                file.write(line.encode() + b"\n")
        try:
            seed = json.loads(mark.read_text(encoding="utf-8"))["seed"]
        except (ValueError, TypeError, LookupError, OSError):
            raise FolderError(
                f"{mark} cannot be read. Write the line {line} into it, or choose another folder."
            ) from None
        if seed != self._seed:
            raise FolderError(
                f"{self.path} has games of the seed {seed}. Give the seed {seed}, or another "
                "folder."
            )

    def _touch_claims(self) -> None:
        """Shows other hosts that this process lives, also during a long training."""
        while not self._closed.wait(_SILENCE / 10):
            with contextlib.suppress(OSError):
                os.utime(self._claims)

    def _of_others(self, alive: bool) -> list[Path]:
        """Lists the claims of the other processes that still play, or those of the dead ones."""
        found = [path for path in self._claims.parent.iterdir() if path.name[0] != "."]
        return [path for path in found if path != self._claims and self._lives(path) == alive]

    def _lives(self, claims: Path) -> bool:
        """Says whether the process of some claims still plays."""
        if claims.name.split("-")[0] != self._host:
            with contextlib.suppress(OSError):
                return time.time() - claims.stat().st_mtime < _SILENCE
            return False
        try:
            with lock_outputs(claims):
                return False
        except LockedError:
            return True


class _Part:
    """A file that games are appended to, with its table; the disk has each game at once."""

    def __init__(self, path: Path, model: str) -> None:
        self.model, self.games = model, 0
        self._path = path.with_name(path.name + PART)
        self._size = 0
        self._file = self._path.open("xb", buffering=0)
        self._table = path.with_name(path.name + TABLE).open("xb", buffering=0)
        _write(self._table, _HEAD)

    def add(self, game: bytes, row: Row) -> None:
        """Appends a game, and then its line."""
        _write(self._file, game)
        self._size += len(game)
        _write(self._table, row._replace(end_byte=self._size).line())
        self.games += 1

    def finish(self) -> None:
        """Cuts off what an error has left, and renames the file."""
        self._file.close()
        self._table.close()
        _finish(self._path)


def _write(file: IO[bytes], data: bytes) -> None:
    """Writes all bytes; a disk that is nearly full takes some of them before the error."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _read(table: Path) -> list[Row]:
    """Reads the complete lines of a table; another process may have removed it."""
    rows, data = [], b""
    with contextlib.suppress(FileNotFoundError):
        data = table.read_bytes()
    for line in data[: data.rfind(b"\n") + 1].decode("ascii", "replace").splitlines():
        cells = line.split("\t")
        with contextlib.suppress(ValueError):  # the head
            if len(cells) == len(COLUMNS):
                rows.append(Row(*(kind(cell) for kind, cell in zip(_KINDS, cells))))  # type: ignore
    return rows


def _finish(part: Path) -> None:
    """Cuts a file and its table to the games that both have, and renames the file."""
    path, size = part.with_suffix(""), part.stat().st_size
    table = path.with_suffix(TABLE)
    rows = [row for row in _read(table) if row.end_byte <= size]
    if not rows:
        table.unlink(missing_ok=True)
        part.unlink()
        return
    os.truncate(part, rows[-1].end_byte)
    with table.open("r+b") as file:  # the same bytes; nothing is lost if this is the end
        file.write(_HEAD + b"".join(row.line() for row in rows))
        file.truncate()
    replace(part, path)
