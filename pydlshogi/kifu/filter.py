"""Selection of game records by player, rating, length and result.

The book trains on floodgate games of strong programs that ended with a resignation. Its
script deletes all other files; this module only says what does not fit and why.
"""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pydlshogi.bar import bar
from pydlshogi.errors import UserError
from pydlshogi.files import plain_file, write_beside
from pydlshogi.kifu.csa import parse_game, split_records
from pydlshogi.kifu.parsed_game import END_MARKS, END_MARKS_FOR_BLACK, Game, RecordError

#: Names of the end marks, without ``%``.
END_MARK_NAMES = tuple(mark.lstrip("%") for mark in (*END_MARKS, *END_MARKS_FOR_BLACK))
#: Stands for a record without an end mark.
NO_END_MARK = "NONE"
#: Stands for every record.
ANY_END_MARK = "ANY"

_CANNOT_BE_OPENED = "cannot be opened"
_CANNOT_BE_READ = "cannot be read"
_FITS_IN_PART = "only some of its games fit"


@dataclass(frozen=True)
class Criteria:
    """Conditions that a game must meet.

    Attributes:
        min_rating: Minimum floodgate rating of both players. 0 also accepts games without
            ratings.
        max_rating: Maximum rating of both players, None for no limit.
        min_moves: Minimum number of moves.
        max_moves: Maximum number of moves, None for no limit.
        results: End marks without ``%``, in upper case. ``NONE`` stands for a record
            without an end mark, ``ANY`` for every record.
        players: Names; one of them must play in the game. Upper and lower case are equal.
            Empty for any player.
    """

    min_rating: float = 0
    max_rating: float | None = None
    min_moves: int = 0
    max_moves: int | None = None
    results: frozenset[str] = frozenset({ANY_END_MARK})
    players: frozenset[str] = frozenset()

    def objection(self, game: Game) -> str | None:
        """Says why a game does not fit, in the same words for every game; None if it fits."""
        names = {_plain_name(name) for name in game.names}
        ratings = [rating for rating in game.ratings if rating is not None]
        mark = (game.end_mark or NO_END_MARK).lstrip("%")
        if self.players and not names & set(map(_plain_name, self.players)):
            return f"not a game of {' or '.join(sorted(self.players))}"
        if self.min_rating and len(ratings) < 2:
            return "a player has no rating"
        if any(rating < self.min_rating for rating in ratings):
            return f"a player is rated below {self.min_rating:g}"
        if self.max_rating is not None and any(rating > self.max_rating for rating in ratings):
            return f"a player is rated above {self.max_rating:g}"
        if len(game.moves) < self.min_moves:
            return f"fewer than {self.min_moves} moves"
        if self.max_moves is not None and len(game.moves) > self.max_moves:
            return f"more than {self.max_moves} moves"
        if not self.results & {ANY_END_MARK, mark}:
            return f"ended by {game.end_mark}" if game.end_mark else "no end mark"
        return None


def _plain_name(name: str) -> str:
    """Returns a player's name as it is compared: without case and surrounding spaces."""
    return name.strip().casefold()


class Misfit(NamedTuple):
    """A file that does not fit.

    Attributes:
        path: The file.
        reason: Why, in the same words for every file.
        detail: What is special about this file; may be empty.
    """

    path: Path
    reason: str
    detail: str

    @property
    def fits_nowhere(self) -> bool:
        """Whether the file was read, and none of its games fits."""
        return self.reason not in (_CANNOT_BE_OPENED, _CANNOT_BE_READ, _FITS_IN_PART)


@dataclass
class Selection:
    """Result of a selection: the files that fit, and those that do not."""

    fitting: list[Path] = field(default_factory=list)
    misfits: list[Misfit] = field(default_factory=list)


def select(files: Sequence[Path], criteria: Criteria) -> Selection:
    """Examines CSA files, with a progress bar on a terminal."""
    selection = Selection()
    for path in bar(files, unit="file"):
        misfit = examine(path, criteria)
        if misfit is None:
            selection.fitting.append(path)
        else:
            selection.misfits.append(misfit)
    return selection


def examine(path: Path, criteria: Criteria) -> Misfit | None:
    """Examines the records of one CSA file: says why it does not fit, or None if all games fit."""
    objections: list[str] = []
    games = 0
    try:
        data = plain_file(path).read_bytes()
    except OSError as error:
        return Misfit(path, _CANNOT_BE_OPENED, str(error.strerror))
    for lines_before, record in split_records(data):
        try:
            objection = criteria.objection(parse_game(record))
        except RecordError as error:
            line = f"line {lines_before + error.line}: " if error.line else ""
            return Misfit(path, _CANNOT_BE_READ, f"{line}{error.reason}")
        games += 1
        if objection:
            objections.append(objection)
    if not objections:
        return None
    if len(objections) < games:
        fitting = f"{games - len(objections)} of {games} games fit"
        return Misfit(path, _FITS_IN_PART, f"{fitting}; the first that does not: {objections[0]}")
    return Misfit(path, objections[0], "")


def copy_files(files: Sequence[Path], source: Path, target: Path) -> None:
    """Copies files below ``source`` to the same relative paths below ``target``, each atomically.

    Nothing is copied if that would replace a file with another content.

    Raises:
        UserError: the folder holds another file of the same name.
        OSError: a file cannot be read or written.
    """
    copies = {path: target / path.relative_to(source) for path in files}
    for path, copy in copies.items():
        if copy.exists() and not filecmp.cmp(path, copy, shallow=False):
            raise UserError(
                f"{copy} exists already and is not the same file as {path}; nothing was copied. "
                "Copy to a new folder."
            )
    target.mkdir(parents=True, exist_ok=True)  # even if no file fits
    for path, copy in bar(copies.items(), unit="file", desc="copy"):
        copy.parent.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as original, write_beside(copy) as file:
            shutil.copyfileobj(original, file)
