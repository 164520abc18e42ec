"""Many games between two engines, kept in a folder and resumed from there."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Callable, TypeVar

from pydlshogi.files import write_beside
from pydlshogi.kifu.game import RecordError
from pydlshogi.match.engine_spec import EngineSpec
from pydlshogi.match.game import PlayedGame, play_game
from pydlshogi.match.openings import random_opening
from pydlshogi.match.record import Outcome, read_outcome, write_record
from pydlshogi.match.referee import Verdict
from pydlshogi.match.table import Row
from pydlshogi.match.usi_client import Limit, UsiClient

#: File in a series' folder that tells what is played there.
SETTINGS = "settings.json"

#: Seconds between two looks at how far the games are.
_PAUSE = 0.05

_Side = TypeVar("_Side", UsiClient, EngineSpec)


class SeriesError(Exception):
    """A series cannot go on in its folder; a sentence."""


@dataclass(frozen=True)
class Conditions:
    """What is the same in all games of a series.

    Attributes:
        limit: What a move may cost.
        plies: Random moves of an opening.
        seed: Seed of the openings.
        max_plies: A game is drawn when it has this many moves.
    """

    limit: Limit
    plies: int
    seed: int
    max_plies: int


@dataclass(frozen=True)
class Series:
    """Games of an engine against an opponent; it is Black in those of odd numbers.

    Attributes:
        engine: The engine from whose side the results are seen.
        opponent: The other one.
        conditions: What is the same in all games.
        folder: Where the records are: ``0001.csa`` and so on.
    """

    engine: EngineSpec
    opponent: EngineSpec
    conditions: Conditions
    folder: Path

    @classmethod
    def read(cls, folder: Path) -> Series:
        """Finds out what was played in a folder.

        Raises:
            SeriesError: its settings cannot be read.
        """
        path = folder / SETTINGS
        try:
            settings = json.loads(path.read_text(encoding="utf-8"))
            engine, opponent = (
                EngineSpec(
                    settings[side]["name"],
                    tuple(settings[side]["command"]),
                    tuple((name, value) for name, value in settings[side]["options"]),
                )
                for side in ("engine", "opponent")
            )
            rest = {name: settings[name] for name in ("plies", "seed", "max_plies")}
            conditions = Conditions(limit=Limit(**settings["limit"]), **rest)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SeriesError(
                f"{path}, which should tell what the games beside it are, cannot be read "
                f"({error!r}). Repair it, or move {folder} elsewhere, and run again."
            ) from None
        return cls(engine, opponent, conditions, folder)

    def check_folder(self) -> None:
        """Sees whether what the folder holds belongs to this series.

        Raises:
            SeriesError: it holds games played under other conditions, or by other
                engines, or cannot be read.
        """
        path = self.folder / SETTINGS
        try:
            found = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise SeriesError(f"{path} cannot be read ({error}).") from None
        if found != self._settings():
            raise SeriesError(
                f"{self.folder} holds games of other engines, options or conditions "
                f"(see {SETTINGS} there). Choose another --output, or remove that folder."
            )

    def outcome(self, number: int) -> Outcome | None:
        """Gives how a game ended, None where it is still to be played.

        Raises:
            SeriesError: its record cannot be read.
        """
        path = self._path(number)
        try:
            return read_outcome(path)
        except FileNotFoundError:
            return None
        except (OSError, RecordError) as error:
            raise SeriesError(f"{path} is no record ({error}). Remove it and run again.") from None

    def missing(self, games: int) -> list[int]:
        """Lists the numbers of the games, from 1, that are still to be played."""
        return [number for number in range(1, games + 1) if self.outcome(number) is None]

    def row(self, games: int | None = None) -> Row:
        """Gives the results of the first games, or of all, so far as they have been played."""
        if games is None:
            numbers = (path.stem for path in self.folder.glob("*.csa"))
            games = max((int(number) for number in numbers if number.isdecimal()), default=0)
        outcomes = {number: self.outcome(number) for number in range(1, games + 1)}
        played = {number: outcome for number, outcome in outcomes.items() if outcome}
        return Row(self.engine.name, self.opponent.name, played)

    def play(
        self,
        numbers: list[int],
        timeout: float,
        concurrency: int,
        played: Callable[[int, Verdict], None],
        interrupted: Callable[[], None],
    ) -> None:
        """Plays games and writes their records.

        Args:
            numbers: Those of the games.
            timeout: Seconds that any answer may take, on top of the byoyomi.
            concurrency: How many games go on at a time, each with its own engines.
            played: Called with the number of each game and how it ended, by any
                thread, one call at a time.
            interrupted: Called at an interrupt from the keyboard, before the games under
                way are finished.

        Raises:
            KeyboardInterrupt: after those games; or at a second interrupt, when the engines
                have been ended and the games given up.
            EngineError: an engine cannot be started or is not ready for a game.
            OSError: a record cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with write_beside(self.folder / SETTINGS) as file:
            file.write(self._settings().encode("utf-8"))
        waiting = iter(numbers)
        lock = threading.Lock()
        stop, give_up = threading.Event(), threading.Event()
        everyone: list[_Player] = []

        def work() -> None:
            with contextlib.ExitStack() as stack:
                players = [
                    stack.enter_context(_Player(spec, timeout))
                    for spec in (self.engine, self.opponent)
                ]
                everyone.extend(players)
                while not stop.is_set():
                    with lock:
                        number = next(waiting, None)
                    if number is None:
                        return
                    game = self._play_one(number, *(player.client() for player in players))
                    if give_up.is_set():
                        return  # it was not lost by the engine that was killed
                    self._write(number, game)
                    with lock:
                        played(number, game.verdict)

        ended: list[BaseException | None] = []

        def run() -> None:
            try:
                work()
            except BaseException as error:
                ended.append(error)
            else:
                ended.append(None)

        threads = [threading.Thread(target=run) for _ in range(min(concurrency, len(numbers)))]
        for thread in threads:
            thread.start()
        # Looked at from time to time, not waited for: an interrupt that comes while this thread
        # holds a lock of futures or conditions may leave it locked, and all would wait for ever.
        try:
            while len(ended) < len(threads):
                if any(ended):
                    stop.set()
                time.sleep(_PAUSE)
        except KeyboardInterrupt:
            stop.set()
            try:
                interrupted()
                while len(ended) < len(threads):
                    time.sleep(_PAUSE)
            except KeyboardInterrupt:
                give_up.set()
                # Until all have ended: an engine may be just about to be started. Further
                # interrupts change nothing.
                while len(ended) < len(threads):
                    with contextlib.suppress(KeyboardInterrupt):
                        for player in list(everyone):
                            player.kill()
                        time.sleep(_PAUSE)
            raise
        for error in filter(None, ended):
            raise error

    def _play_one(self, number: int, engine: UsiClient, opponent: UsiClient) -> PlayedGame:
        """Plays a game."""
        conditions = self.conditions
        pair, players = self._pairing(number, engine, opponent)
        opening = random_opening(conditions.seed, pair, conditions.plies)
        return play_game(players, opening, conditions.limit, conditions.max_plies)

    def _write(self, number: int, game: PlayedGame) -> None:
        """Writes a game's record."""
        conditions = self.conditions
        pair, specs = self._pairing(number, self.engine, self.opponent)
        notes = [
            f"each move: {conditions.limit.command}",
            f"opening: {conditions.plies} random moves, seed {conditions.seed}, pair {pair}",
            *(f"{spec.name}: {name} = {value}" for spec in specs for name, value in spec.options),
        ]
        names = [spec.name for spec in specs]
        write_record(self._path(number), names, f"{self.folder.name} {number}", notes, game)

    @staticmethod
    def _pairing(number: int, engine: _Side, opponent: _Side) -> tuple[int, tuple[_Side, _Side]]:
        """Gives the number of a game's pair, from 0, and its sides: Black, White."""
        pair, second = divmod(number - 1, 2)
        return pair, (opponent, engine) if second else (engine, opponent)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:04}.csa"

    def _settings(self) -> str:
        settings = {
            "engine": asdict(self.engine),
            "opponent": asdict(self.opponent),
            **asdict(self.conditions),
        }
        return json.dumps(settings, indent=2) + "\n"


class _Player:
    """An engine that is started when it is first needed, and again after it has died."""

    def __init__(self, spec: EngineSpec, timeout: float) -> None:
        self._spec = spec
        self._timeout = timeout
        self._client: UsiClient | None = None

    def client(self) -> UsiClient:
        """Gives the running engine."""
        if self._client and not self._client.is_alive():
            self._client.close()
            self._client = None
        if not self._client:
            self._client = UsiClient(self._spec, self._timeout)
            self._client.greet()
        return self._client

    def kill(self) -> None:
        """Ends the engine at once, from another thread than the one that plays by it."""
        client = self._client
        if client:
            client.kill()

    def __enter__(self) -> _Player:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._client:
            self._client.close()
