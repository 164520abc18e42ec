"""The games of a match, recorded in folders and resumed from there.

A series has the games of two engines, a tournament those of every engine against every opponent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Callable, TypeVar

from pydlshogi import table
from pydlshogi.errors import UserError
from pydlshogi.files import write_beside
from pydlshogi.kifu.parsed_game import RecordError
from pydlshogi.lock import lock_outputs
from pydlshogi.match.elo import elo_difference, score_interval
from pydlshogi.match.engine_spec import EngineSpec, Limit
from pydlshogi.match.openings import Opening, draw_openings
from pydlshogi.match.play import Workers, play_game
from pydlshogi.match.record import (
    Outcome,
    PlayedGame,
    format_record,
    read_first_moves,
    read_outcome,
    write_match_page,
)
from pydlshogi.match.referee import Verdict
from pydlshogi.match.usi_client import UsiClient

_TITLES = (
    *("engine", "opponent", "games", "won", "drawn", "lost"),
    *("score", "Elo", "95 % interval", "faults", "moves"),
)
_TSV_TITLES = (
    *(*_TITLES[:7], "elo", "elo_low", "elo_high", "faults"),
    *("opponent_faults", "mean_plies"),
)


@dataclass(frozen=True)
class Row:
    """Results of an engine against an opponent, by the number of the game.

    The engine is Black in odd games.
    """

    engine: str
    opponent: str
    outcomes: dict[int, Outcome]

    @property
    def points(self) -> dict[int, float]:
        """Points of the engine in each game, by its number."""
        return {
            number: outcome.points((number - 1) % 2) for number, outcome in self.outcomes.items()
        }

    @property
    def score(self) -> float:
        """Share of the points that the engine won, 0..1; 0.5 before the first game."""
        points = self.points.values()
        return sum(points) / len(points) if points else 0.5

    def count(self, points: float) -> int:
        """Counts the games in which the engine got 1, 0.5 or 0 points."""
        return list(self.points.values()).count(points)

    def faults(self, points: float) -> int:
        """Counts the games decided by a fault in which the engine got 1 or 0 points."""
        own = self.points
        return sum(o.by_fault and own[number] == points for number, o in self.outcomes.items())

    @property
    def mean_plies(self) -> float:
        """Mean number of moves of a game."""
        return sum(o.plies for o in self.outcomes.values()) / max(1, len(self.outcomes))

    def elo_interval(self) -> tuple[float, float]:
        """Returns the 95 % interval of the Elo difference; infinite if there is no bound."""
        pairs: dict[int, list[float]] = {}
        for number, points in self.points.items():
            pairs.setdefault((number - 1) // 2, []).append(points)
        low, high = score_interval(list(pairs.values()))
        return elo_difference(low), elo_difference(high)


def markdown(rows: Sequence[Row]) -> str:
    """Formats the table as Markdown."""
    cells = (
        [
            *_start(row),
            f"{100 * row.score:.1f} %" if row.outcomes else "",
            _signed(elo_difference(row.score)) if row.outcomes else "",
            _interval(*row.elo_interval()),
            f"{row.faults(0)} : {row.faults(1)}",
            f"{row.mean_plies:.0f}" if row.outcomes else "",
        ]
        for row in rows
    )
    return table.markdown(_TITLES, cells, texts=(0, 1, 8, 9))


def tsv(rows: Sequence[Row]) -> str:
    """Formats the table as TSV; cells without a bound or without games are empty."""
    cells = []
    for row in rows:
        elos = (elo_difference(row.score), *row.elo_interval()) if row.outcomes else [math.inf] * 3
        cells.append(
            [
                *_start(row),
                f"{row.score:.4f}" if row.outcomes else "",
                *("" if math.isinf(elo) else f"{elo:.1f}" for elo in elos),
                str(row.faults(0)),
                str(row.faults(1)),
                f"{row.mean_plies:.1f}" if row.outcomes else "",
            ]
        )
    return table.tsv(_TSV_TITLES, cells)


def _start(row: Row) -> list[str]:
    """Returns the cells that both tables begin with."""
    counts = (len(row.outcomes), *(row.count(points) for points in (1, 0.5, 0)))
    return [row.engine, row.opponent, *map(str, counts)]


def _interval(low: float, high: float) -> str:
    """Formats an interval, or its one known bound."""
    if math.isinf(low) and math.isinf(high):
        return "unknown"
    if math.isinf(low):
        return f"at most {_signed(high)}"
    if math.isinf(high):
        return f"at least {_signed(low)}"
    return f"{_signed(low)} to {_signed(high)}"


def _signed(elo: float) -> str:
    """Formats an Elo difference as a whole number; a dash if it is infinite."""
    return "-" if math.isinf(elo) else f"{elo:+.0f}"


#: File in the folder of a series that describes what is played there.
SETTINGS = "settings.json"

_Side = TypeVar("_Side", UsiClient, EngineSpec)


class SeriesError(UserError):
    """A series cannot continue in its folder."""


@dataclass(frozen=True)
class Conditions:
    """What all games of a series have in common.

    Without a ``kifu_list``, the games begin with random moves.
    """

    limit: Limit
    plies: int
    seed: int
    max_plies: int
    kifu_list: str | None = None

    def openings(self, games: int) -> tuple[Opening, ...]:
        """Draws the openings of so many games, one for each pair, as ``draw_openings``."""
        return draw_openings((games + 1) // 2, self.plies, self.seed, self.kifu_list)


@dataclass(frozen=True)
class Series:
    """Games of an engine against an opponent; the engine is Black in odd-numbered games.

    The folder holds the records ``0001.csa`` … and their pages ``0001.html`` ….
    """

    engine: EngineSpec
    opponent: EngineSpec
    conditions: Conditions
    folder: Path

    @classmethod
    def read(cls, folder: Path) -> Series:
        """Reads from the settings in a folder what is played there; raises ``SeriesError``."""
        path = folder / SETTINGS
        try:
            settings = json.loads(path.read_text(encoding="utf-8"))
            engine, opponent = (_read_spec(settings[side]) for side in ("engine", "opponent"))
            rest = {name: settings[name] for name in ("plies", "seed", "max_plies", "kifu_list")}
            conditions = Conditions(limit=Limit(**settings["limit"]), **rest)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SeriesError(
                f"{path} should describe the games beside it and cannot be read "
                f"({error!r}). Repair it, or move {folder} elsewhere, and run again."
            ) from None
        return cls(engine, opponent, conditions, folder)

    def check_folder(self) -> None:
        """Checks that the folder is empty or belongs to this series; raises ``SeriesError``."""
        path = self.folder / SETTINGS
        # Listed first: another match may start now, and writes its settings before its games.
        games = self._games()
        try:
            found = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            if games:
                raise SeriesError(
                    f"{self.folder} holds game records, but no {SETTINGS} that describes them. "
                    "Choose another output folder, or move that folder elsewhere."
                ) from None
            return
        except (OSError, ValueError) as error:
            raise SeriesError(
                f"{path} cannot be read ({error}). Choose another output folder."
            ) from None
        if games and found != self._settings():
            raise SeriesError(
                f"{self.folder} holds games of other engines, options or conditions "
                f"(see {SETTINGS} there). Choose another output folder, or remove that folder."
            )

    def outcome(self, number: int) -> Outcome | None:
        """Returns the outcome of a game; None if it has not been played.

        A record that cannot be read raises ``SeriesError``.
        """
        path = self._path(number)
        try:
            return read_outcome(path)
        except FileNotFoundError:
            return None
        except (OSError, RecordError) as error:
            raise SeriesError(f"{path} is no record ({error}). Remove it and run again.") from None

    def missing(self, games: int) -> list[int]:
        """Lists the numbers, from 1, of the games to play; raises as :meth:`check_folder`."""
        self.check_folder()
        return [number for number in range(1, games + 1) if self.outcome(number) is None]

    def row(self) -> Row:
        """Returns the results of all games."""
        outcomes = ((number, self.outcome(number)) for number in sorted(self._games()))
        played = {number: outcome for number, outcome in outcomes if outcome}
        return Row(self.engine.name, self.opponent.name, played)

    def play(
        self,
        numbers: list[int],
        timeout: float,
        concurrency: int,
        played: Callable[[int, Verdict], None],
        interrupted: Callable[[], None],
    ) -> None:
        """Plays the games with some numbers, and writes their records.

        It raises what :meth:`Workers.run` raises, and UserError if another match plays this series,
        the folder belongs to other games, or there are not enough openings.

        Args:
            timeout: Seconds that an answer may take, in addition to the byoyomi.
            played: Receives the number and the verdict of each game; called by one
                thread at a time.
            interrupted: Called at the first Ctrl-C, before the current games end.
        """
        openings = self.conditions.openings(max(numbers, default=0))
        self.folder.mkdir(parents=True, exist_ok=True)

        def play_one(number: int, engine: UsiClient, opponent: UsiClient) -> PlayedGame:
            pair, players = _pairing(number, engine, opponent)
            conditions = self.conditions
            return play_game(players, openings[pair].moves, conditions.limit, conditions.max_plies)

        def finished(number: int, game: PlayedGame) -> None:
            pair, specs = _pairing(number, self.engine, self.opponent)
            self._write(number, specs, f"{openings[pair].origin}, pair {pair}", game)
            played(number, game.verdict)

        with lock_outputs(self.folder / SETTINGS):
            self.check_folder()  # another match may have used it since the first check
            numbers = [number for number in numbers if self.outcome(number) is None]
            self.check_partners(numbers)
            with write_beside(self.folder / SETTINGS) as file:
                file.write(self._settings().encode("utf-8"))
            workers = Workers((self.engine, self.opponent), timeout, play_one, finished)
            workers.run(numbers, concurrency, interrupted)

    def check_partners(self, numbers: list[int]) -> None:
        """Checks that games to play will begin as the stored games of their pairs do.

        It raises ``SeriesError``, and what :func:`draw_openings` raises.
        """
        openings = self.conditions.openings(max(numbers, default=0))
        for number in numbers:
            partner = number + 1 if number % 2 else number - 1
            path, opening = self._path(partner), openings[(number - 1) // 2].moves
            if self.outcome(partner) is None:
                continue
            try:
                begin = read_first_moves(path, len(opening))
            except (OSError, RecordError) as error:
                raise SeriesError(
                    f"{path} cannot be read ({error}). Remove it and run again."
                ) from None
            if begin != opening:
                raise SeriesError(
                    f"{path} begins with other moves than the opening of its pair: "
                    f"{self.conditions.kifu_list or 'the openings'} may have changed. Remove that "
                    "record or choose another output folder."
                )

    def _write(
        self, number: int, specs: tuple[EngineSpec, EngineSpec], opening: str, game: PlayedGame
    ) -> None:
        """Writes the page of a game, and its record.

        The record comes last, because a game with a record is not played again.
        """
        has_own_limits = all(spec.limit for spec in specs)
        notes = [
            *([] if has_own_limits else [f"each move: {self.conditions.limit.command}"]),
            f"opening: {opening}",
            *(note for spec in specs for note in _notes(spec)),
        ]
        names = [spec.name for spec in specs]
        path = self._path(number)
        record = format_record(names, f"{self.folder.name} {number}", notes, game)
        if game.moves:
            winner, reason = game.verdict.winner, game.verdict.reason
            notes.append(reason if winner is None else f"{reason}; {names[winner]} wins")
            page = path.with_suffix(".html")
            write_match_page(page, record, game, notes)
        with write_beside(path) as file:
            file.write(record)

    def _games(self) -> list[int]:
        """Lists the numbers of the records in the folder."""
        names = (path.stem for path in self.folder.glob("*.csa"))
        return [int(name) for name in names if name.isdecimal()]

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:04}.csa"

    def _settings(self) -> str:
        settings = {
            "engine": asdict(self.engine),
            "opponent": asdict(self.opponent),
            **asdict(self.conditions),
        }
        return json.dumps(settings, indent=2) + "\n"


@dataclass(frozen=True)
class Tournament:
    """The series of a match: each engine against each opponent.

    ``timeout``: seconds that an answer may take, in addition to the byoyomi.
    """

    engines: Sequence[EngineSpec]
    opponents: Sequence[EngineSpec]
    games: int
    conditions: Conditions
    output: Path
    timeout: float

    def series(self) -> list[Series]:
        """Lists all series; raises ``SeriesError`` if two would use the same folder."""
        found: dict[str, Series] = {}
        for engine in self.engines:
            for opponent in self.opponents:
                folder = self.output / f"{engine.name}_{opponent.name}"
                name = str(folder).casefold()  # Windows and macOS ignore case
                if name in found:
                    raise SeriesError(
                        f"the games of {engine.name} against {opponent.name} and those of "
                        f"{found[name].engine.name} against {found[name].opponent.name} would "
                        f"both go to {folder}. Give one of the engines another name."
                    )
                found[name] = Series(engine, opponent, self.conditions, folder)
        return list(found.values())

    def check(self) -> None:
        """Finds all faults of the settings before the first game; starts each engine once.

        UserError: a folder belongs to other games, there are not enough openings, or an engine
        cannot be started.
        """
        self.conditions.openings(self.games)
        needed: dict[EngineSpec, None] = {}
        for series in self.series():
            missing = series.missing(self.games)
            series.check_partners(missing)
            if missing:
                needed.update(dict.fromkeys((series.engine, series.opponent)))
        self._other_rows()
        for spec in needed:
            with UsiClient(spec, self.timeout) as client:
                client.new_game()

    def write_tables(self) -> str:
        """Writes ``table.md`` and ``table.tsv`` of all games in the folder; returns the former."""
        rows = self._other_rows() + [series.row() for series in self.series()]
        for name, text in (("table.md", markdown(rows)), ("table.tsv", tsv(rows))):
            with write_beside(self.output / name) as file:
                file.write(text.encode("utf-8"))
        return markdown(rows)

    def _other_rows(self) -> list[Row]:
        """Returns the results of other commands in the same folder."""
        known = {series.folder for series in self.series()}
        # Other programs too write files named settings.json; ours stand beside records.
        folders = sorted({path.parent for path in self.output.glob("*/[0-9]*.csa")} - known)
        rows = [Series.read(folder).row() for folder in folders if (folder / SETTINGS).exists()]
        return [row for row in rows if row.outcomes]


def _read_spec(settings: dict) -> EngineSpec:
    """Reads an engine from the settings of a folder."""
    options = tuple((name, value) for name, value in settings["options"])
    limit = settings["limit"] and Limit(**settings["limit"])
    return EngineSpec(settings["name"], tuple(settings["command"]), options, limit)


def _notes(spec: EngineSpec) -> list[str]:
    """Returns what the records of games say about an engine."""
    limit = [f"{spec.name}: {spec.limit.command}"] if spec.limit else []
    return [*limit, *(f"{spec.name}: {name} = {value}" for name, value in spec.options)]


def _pairing(number: int, engine: _Side, opponent: _Side) -> tuple[int, tuple[_Side, _Side]]:
    """Returns the number of a game's pair, from 0, and its two sides, Black first."""
    pair, second = divmod(number - 1, 2)
    return pair, (opponent, engine) if second else (engine, opponent)
