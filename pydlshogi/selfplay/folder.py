"""The folder of the games: files of finished games, and who plays which number.

=====================  ======================================================================
``selfplay.json``      the seed; marks the folder as one of self-play
``NAME.hcpe3``         games; ``NAME.hcpe3.part`` while a process appends to it
``NAME.tsv``           a line for each game in it (:data:`COLUMNS`)
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
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import filelock

from pydlshogi.errors import UserError
from pydlshogi.files import write_beside
from pydlshogi.lock import LockedError, lock_outputs

MARK = "selfplay.json"
FINISHED, PART = ".hcpe3", ".hcpe3.part"

#: The columns of the tables.
COLUMNS = (
    *("end_byte", "game", "start", "plies", "winner", "end"),
    *("targets", "evaluations", "resigned", "seconds"),
)
_HEAD = "\t".join(COLUMNS) + "\n"

#: Seconds that a process waits for the lock of the folder.
_PATIENCE = 60

#: Seconds after which the process of another host that claims no number counts as dead. Its lock
#: may not be seen here.
_SILENCE = 3600


class FolderError(UserError):
    """The folder cannot be used."""


class Row(NamedTuple):
    """A finished game; the fields are those of :data:`COLUMNS`.

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

    @classmethod
    def parse(cls, line: str) -> Row:
        """Reads a line; raises ValueError."""
        cells = line.split("\t")
        if len(cells) != len(COLUMNS):
            raise ValueError(line)
        kinds = (int, int, str, int, str, str, int, int, str, float)
        return cls(*(kind(cell) for kind, cell in zip(kinds, cells)))  # type: ignore[arg-type]


class GameFolder:
    """A folder of games, open for one process that plays some of them.

    Args:
        path: The folder; it is made if necessary.
        seed: The seed of the games. It must be that of the games there.
        games_a_file: Number of games in a file.

    Raises:
        FolderError: the folder has other files, or games of another seed.
    """

    def __init__(self, path: Path, seed: int, games_a_file: int = 500) -> None:
        self.path = path
        self._seed = seed
        self._games_a_file = games_a_file
        host = re.sub(r"[^A-Za-z0-9]+", "_", socket.gethostname())
        self.process = f"{host}-{os.getpid()}-{secrets.token_hex(2)}"
        self._claims = path / "claims" / self.process
        self.tables = Tables(path)
        self._part: _Part | None = None
        self._files = 0
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> GameFolder:
        (self.path / "claims").mkdir(parents=True, exist_ok=True)
        with self._locked():
            self._check()
            self._claims.touch()
            self._stack.enter_context(lock_outputs(self._claims))
            self._tidy()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.finish_file()
        self._stack.close()
        with contextlib.suppress(OSError):
            self._claims.unlink()

    def rows(self) -> list[Row]:
        """Returns the finished games of all processes."""
        return self.tables.rows()

    def claim(self, most: int, until: int) -> list[int]:
        """Claims the numbers of games to play.

        Args:
            most: Largest number of numbers.
            until: Number of the last game.

        Returns:
            Numbers that no living process plays or has played; fewer than ``most`` near the end.
        """
        with self._locked():
            taken = {row.game for row in self.rows()}
            for claims in self._all_claims():
                if claims == self._claims or self._lives(claims):
                    taken.update(map(int, claims.read_text().split()))
            free = (number for number in range(1, until + 1) if number not in taken)
            numbers = [number for number, _ in zip(free, range(most))]
            with self._claims.open("a") as file:
                file.write("".join(f"{number}\n" for number in numbers))
        return numbers

    def add(self, model: str, game: bytes, row: Row) -> None:
        """Appends a finished game; ``row.end_byte`` is set here.

        Args:
            model: Name of the model, for the name of the file.
            game: Its bytes in HCPE3.
            row: Its line.
        """
        if self._part and (self._part.model != model or self._part.games == self._games_a_file):
            self.finish_file()
        if not self._part:
            self._files += 1
            name = f"{model}.{self.process}.{self._files:04}"
            self._part = _Part(self.path / name, model)
        self._part.add(game, row)

    def finish_file(self) -> None:
        """Renames the present file, so that a training reads it."""
        if self._part:
            self._part.finish()
            self._part = None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        lock = filelock.FileLock(self.path / ".lock", timeout=_PATIENCE)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise FolderError(
                f"another process has locked {self.path} for more than {_PATIENCE} seconds. Wait "
                "until it goes on, or stop it."
            ) from None
        try:
            yield
        finally:
            lock.release()

    def _check(self) -> None:
        """Checks that the folder is one of self-play with the same seed, or an empty one."""
        mark = self.path / MARK
        wanted = {"seed": self._seed}
        if mark.exists():
            try:
                found = json.loads(mark.read_text(encoding="utf-8"))
            except (ValueError, OSError):
                found = None
            if found != wanted:
                seed = found.get("seed") if isinstance(found, dict) else None
                raise FolderError(
                    f"{self.path} has games of the seed {seed}. Give the seed {seed}, or another "
                    "folder."
                    if isinstance(seed, int)
                    else f"{mark} cannot be read. Write the line "
                    f"{json.dumps(wanted)} into it, or choose another folder."
                )
            return
        foreign = sorted(
            entry.name for entry in self.path.iterdir() if entry.name not in ("claims", ".lock")
        )
        if foreign:
            raise FolderError(
                f"{self.path} has files of something else, such as {foreign[0]}. Choose a new "
                "folder for the games."
            )
        with write_beside(mark) as file:
            file.write(json.dumps(wanted).encode() + b"\n")

    def _all_claims(self) -> Iterator[Path]:
        return (path for path in (self.path / "claims").iterdir() if path.name[0] != ".")

    def _lives(self, claims: Path) -> bool:
        """Says whether the process of some claims still plays."""
        if claims.name.split("-")[0] != self.process.split("-")[0]:
            with contextlib.suppress(OSError):
                return time.time() - claims.stat().st_mtime < _SILENCE
            return False
        try:
            with lock_outputs(claims):
                return False
        except LockedError:
            return True

    def _tidy(self) -> None:
        """Ends what dead processes have left: their files, and their claims."""
        for claims in self._all_claims():
            if claims == self._claims or self._lives(claims):
                continue
            for part in self.path.glob(f"*.{claims.name}.*{PART}"):
                _repair(part)
            claims.unlink()


class Tables:
    """The tables of a folder, read further at each call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: dict[Path, tuple[int, list[Row]]] = {}
        self._ended: set[Path] = set()

    def rows(self) -> list[Row]:
        """Returns the finished games, file by file.

        Raises:
            FolderError: a file of games is shorter than its table says.
        """
        for table in sorted({*self._path.glob("*.tsv")} - self._ended):
            if table.with_suffix(FINISHED).exists():
                self._ended.add(table)  # nothing is appended after its file was renamed
            offset, rows = self._read.get(table, (0, []))
            with table.open("rb") as file:
                file.seek(offset)
                new = file.read()
            new = new[: new.rfind(b"\n") + 1]
            for line in new.decode("ascii", "replace").splitlines():
                with contextlib.suppress(ValueError):  # the head
                    rows.append(Row.parse(line))
            self._read[table] = offset + len(new), rows
            if new and rows:
                _check_size(table, rows[-1].end_byte)
        return [row for _, rows in self._read.values() for row in rows]

    def of_files(self) -> dict[Path, list[Row]]:
        """Returns the games of each finished file."""
        self.rows()
        found = {table.with_suffix(FINISHED): rows for table, (_, rows) in self._read.items()}
        return {path: rows for path, rows in found.items() if rows and path.exists()}


def _check_size(table: Path, wanted: int) -> None:
    """Raises FolderError if the games of a table are not all there."""
    path = table.with_suffix(FINISHED)
    with contextlib.suppress(FileNotFoundError):
        size = path.stat().st_size
        if size < wanted:
            raise FolderError(
                f"{path} is cut short: it has {size} of {wanted} bytes. Copy it again; or remove "
                f"it and {table.name}, then its games are played again."
            )


class _Part:
    """A file that games are appended to, with its table; the disk has each game at once."""

    def __init__(self, path: Path, model: str) -> None:
        self.model, self.games = model, 0
        self._path = path.with_name(path.name + PART)
        self._size = 0
        self._file = self._path.open("xb", buffering=0)
        self._table = path.with_name(path.name + ".tsv").open("xb", buffering=0)
        _write(self._table, _HEAD.encode())

    def add(self, game: bytes, row: Row) -> None:
        """Appends a game, and then its line."""
        _write(self._file, game)
        self._size += len(game)
        row = row._replace(end_byte=self._size)
        _write(self._table, ("\t".join(map(str, row)) + "\n").encode("ascii"))
        self.games += 1

    def finish(self) -> None:
        """Cuts off what an error has left, and renames the file."""
        self._file.close()
        self._table.close()
        _repair(self._path)


def _write(file: object, data: bytes) -> None:
    """Writes all bytes; a disk that is nearly full takes some of them before the error."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]  # type: ignore[attr-defined]


def _repair(part: Path) -> None:
    """Cuts a file and its table to the games that both have, and renames the file."""
    path = part.with_name(part.name[: -len(PART)] + FINISHED)
    table = path.with_suffix(".tsv")
    size = part.stat().st_size
    rows: Sequence[Row] = []
    if table.exists():
        data = table.read_bytes()
        for line in data[: data.rfind(b"\n") + 1].decode("ascii", "replace").splitlines()[1:]:
            with contextlib.suppress(ValueError):
                rows = [*rows, Row.parse(line)]
    rows = [row for row in rows if row.end_byte <= size]
    if not rows:
        table.unlink(missing_ok=True)
        part.unlink()
        return
    os.truncate(part, rows[-1].end_byte)
    with table.open("r+b") as file:
        text = _HEAD + "".join("\t".join(map(str, row)) + "\n" for row in rows)
        file.write(text.encode("ascii"))  # the same bytes; nothing is lost if this is the end
        file.truncate()
    os.replace(part, path)
