"""The loop: games by the best network, training on them, a match, and again.

=====================  ======================================================================
``reinforce.json``     the configuration (:mod:`pydlshogi.selfplay.settings`)
``best``               the best network, which the generators use
``games/``             the games (:mod:`pydlshogi.selfplay.folder`)
``cycles/0001/``       a cycle: its lists, the new network, the log, the match, ``result.json``
``table.tsv``          a line for each cycle; ``table.md`` and ``index.html`` show the same
``progress.png``       Elo and losses
=====================  ======================================================================

Each step of a cycle leaves a file, and begins or goes on if that is missing. So the loop can be
killed at any time. Other generators may play into ``games/`` with the network ``best``.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import shogi

from pydlshogi import table
from pydlshogi.errors import UserError
from pydlshogi.figure import new_figure, save_figure
from pydlshogi.files import not_written, write_beside
from pydlshogi.match.elo import elo_difference, score_interval
from pydlshogi.match.openings import draw_openings
from pydlshogi.model_files.model_file import load_network
from pydlshogi.network.registry import name_of
from pydlshogi.selfplay.folder import GameFolder, Row
from pydlshogi.selfplay.game import LiveGame, Pool
from pydlshogi.selfplay.generate import ENDLESS, Generator, Model
from pydlshogi.selfplay.search import RootSearch
from pydlshogi.selfplay.settings import LoopSettings, SelfPlaySettings
from pydlshogi.selfplay.starts import EVEN, Start
from pydlshogi.signals import Terminated
from pydlshogi.training.checkpoint import finish_save
from pydlshogi.training.end import Interruption
from pydlshogi.training.log import EpochPoint, read_log
from pydlshogi.training.log_file import log_to
from pydlshogi.training.recipe import Options, Settings
from pydlshogi.training.run import run
from pydlshogi.uct.move import from_usi

#: Random moves of an opening, or moves of a game of the list.
_RANDOM_PLIES, _KIFU_PLIES = 4, 24


class Score:
    """The result of a match for the first network, from its points in each pair of games.

    ``games`` is the number of games, ``share`` the share of the points: 0 to 1, 0.5 without a game.
    """

    def __init__(self, points: Sequence[Sequence[float]]) -> None:
        self._points, self.games = points, 2 * len(points)
        self.share = sum(map(sum, points)) / self.games if points else 0.5

    def elo(self) -> tuple[float, float, float]:
        """Returns the Elo difference and its 95 % interval; infinite without a bound."""
        low, high = score_interval(self._points)
        return elo_difference(self.share), elo_difference(low), elo_difference(high)


def play_duel(
    first: Model, second: Model, path: Path, settings: SelfPlaySettings,
    *, games: int, batch: int, seed: int, end: float,
) -> Score | None:  # fmt: skip
    """Plays the games of a match that are missing, ``batch`` of them at once.

    Each opening, drawn by ``seed``, begins two games; ``first`` is Black in odd ones. All searches
    are full ones, without noise. The table ``path`` has the games so far, and goes on after a kill.

    Returns:
        The result; None if it was given up at the time ``end``, as by ``time.monotonic``: short
        games end first, and must not decide alone.
    """
    settings = dataclasses.replace(settings, play_on_share=0.0)
    plies = _KIFU_PLIES if settings.kifu_list else _RANDOM_PLIES
    openings = draw_openings(games // 2, plies, seed, settings.kifu_list or None)
    points = _read(path)
    waiting = [number for number in range(1, games + 1) if number not in points]
    networks = first.evaluator, second.evaluator
    pool = Pool(networks, batch)
    with path.open("ab", buffering=0) as table:
        while waiting or pool.games:
            if time.monotonic() >= end:
                return None
            while waiting and len(pool.games) < batch:
                number = waiting.pop(0)
                moves = [from_usi(move) for move in openings[(number - 1) // 2].moves]
                order = (0, 1) if number % 2 else (1, 0)  # the networks as Black and White
                black, white = (RootSearch(settings, networks[n].plane_num) for n in order)
                start = Start(EVEN, shogi.STARTING_SFEN, moves)
                pool.games.append(LiveGame(number, start, (black, white), settings, None, order))
            for game in pool.step()[0]:
                won = 0.5 if game.winner is None else float(game.winner == 1 - game.number % 2)
                points[game.number] = won
                table.write(f"{game.number}\t{won}\t{len(game.moves)}\t{game.end}\n".encode())
    return Score([(points[n], points[n + 1]) for n in range(1, games, 2)])


def _read(path: Path) -> dict[int, float]:
    """Reads the points of the games so far; cuts off a line that is incomplete."""
    data = path.read_bytes() if path.exists() else b""
    data = data[: data.rfind(b"\n") + 1]
    if path.exists():
        os.truncate(path, len(data))
    cells = (line.split(b"\t") for line in data.splitlines())
    return {int(number): float(won) for number, won, *_ in cells}


def choose_files(
    games: Mapping[Path, Sequence[Row]],
    uses: Mapping[str, int],
    settings: LoopSettings,
    generator: random.Random,
) -> tuple[Path | None, list[Path]]:
    """Chooses the file that tests a network, which no training has used, and those that train it.

    Args:
        games: The games of each file.
        uses: In how many trainings a file was used, by its name.
        settings: Those of the loop.
        generator: Draws the files; older ones are less likely.
    """
    files = [
        (max(row.game for row in rows), targets, file)
        for file, rows in games.items()
        if (targets := sum(row.targets for row in rows))
    ]
    files.sort(reverse=True)  # the newest first
    whole = max(settings.least_rows, settings.window * sum(rows for _, rows, _ in files))
    test = next((file for _, _, file in files if not uses.get(file.name)), None)
    chosen, age = [], 0
    for _, rows, file in files:
        if file == test:
            continue
        probability = 1 - (1 - settings.fading) * age / whole
        age += rows
        if uses.get(file.name, 0) < settings.most_uses and generator.random() < probability:
            chosen.append(file)
        if age > whole:
            break
    return test, chosen


class LoopError(UserError):
    """The loop cannot begin or go on."""


def _last_epoch(path: Path) -> EpochPoint:
    """Reads the results of the training of a cycle from its log."""
    curves = read_log(path.read_text(encoding="utf-8", errors="replace").splitlines())
    if not curves or not curves[-1].epochs:
        raise LoopError(
            f"{path} lacks the lines of the training. To repeat this cycle, rename its folder."
        )
    return curves[-1].epochs[-1]


_MOST_ELO = 800  # the largest difference that a table shows


class Loop:
    """The loop of a folder, which is locked and has the file ``best``.

    ``device`` and ``backend`` compute the networks of the games, ``gpu`` is that of the training,
    as in its options, and the loop ends at the time ``end``, as by ``time.monotonic``.
    """

    def __init__(
        self, folder: Path, settings: LoopSettings, device: Any, backend: str, gpu: int | None,
        end: float,
    ) -> None:  # fmt: skip
        self._folder, self._settings, self._gpu = folder, settings, gpu
        self._device, self._backend, self._end = device, backend, end

    def run(self, cycles: float) -> None:
        """Makes cycles until the time is over, or the folder has so many.

        Raises:
            UserError, OSError: a step failed. The next call goes on with it.
            KeyboardInterrupt: a signal came during a training.
        """
        settings, play = self._settings, self._settings.self_play
        if play.kifu_list:  # a list that is too short is told before the first game
            draw_openings(settings.games_of_match() // 2, _KIFU_PLIES, 0, play.kifu_list)
        self._end_cycle()
        a_file = max(1, settings.games // 10)
        with GameFolder(self._folder / "games", settings.seed, a_file) as games:
            best = Model(self._folder / "best", self._device, self._backend)
            generator = Generator(best, games, play, settings.seed, settings.batch)
            while time.monotonic() < self._end and len(self._results()) < cycles:
                self._cycle(1 + len(self._results()), games, generator)

    def _cycle(self, cycle: int, games: GameFolder, generator: Generator) -> None:
        """Makes a cycle, or goes on with it; the end of the time leaves it incomplete."""
        settings, start = self._settings, time.monotonic()
        path = self._folder / "cycles" / f"{cycle:04}"
        path.mkdir(parents=True, exist_ok=True)
        wanted = cycle * settings.games
        while not (path / "train.txt").exists():
            self._play(wanted, games, generator)
            if time.monotonic() >= self._end:
                return
            self._write_lists(path, games)
            wanted = len(games.rows()) + 1 + settings.games // 4  # if all were used too often
        self._train(path)
        if not (path / "trained").exists():
            return
        epoch = _last_epoch(path / "log.txt")
        new = Model(path / "model", self._device, self._backend)
        score = play_duel(
            new, generator.model, path / "match.tsv", settings.self_play, end=self._end,
            games=settings.games_of_match(), batch=settings.batch, seed=settings.seed + cycle,
        )  # fmt: skip
        if not score:
            return
        hours = (time.monotonic() - start) / 3600
        self._note(cycle, path, games, epoch, score, hours)
        generator.look_for_model()

    def _play(self, wanted: int, games: GameFolder, generator: Generator) -> None:
        """Plays until the folder has so many games, and the least number of positions."""
        least = self._settings.least_rows

        def is_enough() -> bool:
            rows = games.rows()
            has_rows = sum(row.targets for row in rows) >= least
            return len(rows) >= wanted and has_rows or time.monotonic() >= self._end

        while not is_enough():
            generator.run(ENDLESS, is_enough)
        games.finish_file()

    def _write_lists(self, path: Path, games: GameFolder) -> None:
        """Writes the lists of games for a training, unless there are too few files."""
        settings = self._settings
        uses = Counter(
            Path(name).name
            for train in self._folder.glob("cycles/*/train.txt")
            for name in train.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
        )
        generator = random.Random(f"{settings.seed} {path.name}")
        test, chosen = choose_files(games.of_files(), uses, settings, generator)
        if not chosen or not test:
            return
        for name, listed in (("test.txt", [test]), ("train.txt", chosen)):
            with write_beside(path / name) as output:
                lines = "".join(f"{file.resolve()}\n" for file in listed)
                output.write(lines.encode("utf-8", "surrogateescape"))

    def _train(self, path: Path) -> None:
        """Trains the new network, or goes on with its training, at most to the end of the time."""
        settings, model, state = self._settings, path / "model", path / "state"
        if (path / "trained").exists():
            return
        goes_on = state.exists()
        if goes_on:
            finish_save(model, state)
        start = model if goes_on else self._folder / "best"
        options = Options(
            str(path / "train.txt"),
            str(path / "test.txt"),
            Settings(model, state, batchsize=settings.batchsize, epoch=1, recipe=settings.recipe),
            network=name_of(load_network(start)) or "",
            initmodel=str(start),
            resume=str(state) if goes_on else "",
            gpu=self._gpu,
            seed=None if goes_on else settings.seed,
        )
        interruption = Interruption(end=self._end)
        with log_to(path / "log.txt"):
            logging.getLogger(__name__).info("cycle %s", path.name)
            is_complete = not run(options, interruption=interruption, once=True)
        if is_complete:
            (path / "trained").touch()
            for pickle in path.glob("*.pickle"):
                pickle.unlink()  # they are large, and no other cycle has the same lists
        if interruption.signal_number and time.monotonic() < self._end:
            raise Terminated(interruption.signal_number)

    def _note(
        self, cycle: int, path: Path, games: GameFolder, epoch: EpochPoint, score: Any, hours: float
    ) -> None:
        """Takes the new network if it has won, and writes the results of the cycle."""
        taken = score.share >= self._settings.take_at
        earlier = self._results()
        before = earlier[-1]["elo"] if earlier else 0
        # There is no bound if one side has won all games.
        elo, low, high = (round(max(-_MOST_ELO, min(value, _MOST_ELO))) for value in score.elo())
        rows = games.rows()
        result = {
            "cycle": cycle,
            "games": len(rows),
            "rows": sum(row.targets for row in rows),
            "train rows": epoch.positions,
            "policy loss": epoch.test_policy_loss,
            "value loss": epoch.test_value_loss,
            "match games": score.games,
            "score": score.share,
            "taken": "yes" if taken else "no",
            "elo": before + elo if taken else before,
            "elo low": before + low,
            "elo high": before + high,
            "hours": round(hours, 3),
        }
        with write_beside(path / "result.json") as file:
            file.write(json.dumps(result, indent=2).encode() + b"\n")
        self._end_cycle()

    def _end_cycle(self) -> None:
        """Does what follows from the result of the last cycle, again after a kill."""
        results = self._results()
        if not results:
            return
        path = self._folder / "cycles" / f"{results[-1]['cycle']:04}"
        if results[-1]["taken"] == "yes":
            with (path / "model").open("rb") as new, write_beside(self._folder / "best") as file:
                shutil.copyfileobj(new, file)
        (path / "state").unlink(missing_ok=True)  # as large as the network, or larger
        try:
            write_pages(self._folder, results)
        except OSError as error:  # the next cycle tries again
            print(f"reinforce: {not_written(error.filename, error)}", file=sys.stderr)
        except UserError as error:
            print(f"reinforce: {error}", file=sys.stderr)

    def _results(self) -> list[dict[str, Any]]:
        """Returns the results of the complete cycles."""
        paths = sorted(self._folder.glob("cycles/*/result.json"))
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def write_pages(folder: Path, results: Sequence[dict[str, Any]]) -> None:
    """Writes the table, the plot and the page of a loop."""
    titles, rows = list(results[0]), [list(result.values()) for result in results]
    shown = table.markdown(titles, rows, texts=(titles.index("taken"),))
    for name, text in (("table.tsv", table.tsv(titles, rows)), ("table.md", shown)):
        with write_beside(folder / name) as file:
            file.write(text.encode())
    pages = sorted((folder / "games" / "records").glob("*.html"))[-10:]
    links = "".join(f'<li><a href="games/records/{page.name}">{page.stem}</a>' for page in pages)
    cells = "".join(f"<tr><td>{row[2:-2].replace(' | ', '<td>')}" for row in shown.splitlines()
                    if not row.startswith("|:") and not row.startswith("|-"))  # fmt: skip
    page = (
        "<!DOCTYPE html><meta charset=utf-8><title>Self-play</title>"
        "<style>body{font-family:sans-serif}td{padding:2px 8px;text-align:right}</style>"
        f"<h1>Self-play</h1><img src=progress.png width=800><table>{cells}</table>"
        f"<h2>The newest games</h2><ul>{links}</ul>"
    )
    with write_beside(folder / "index.html") as file:
        file.write(page.encode())
    figure = new_figure(8, 7)
    above, below = figure.subplots(2, sharex=True)
    column = dict(zip(titles, zip(*rows)))
    cycles, bounds = column["cycle"], (column["elo low"], column["elo high"])
    above.plot(cycles, column["elo"], marker="o", label="best network")
    above.fill_between(cycles, *bounds, alpha=0.2, label="new network, 95 % interval")
    above.set_ylabel("Elo against the start")
    for name in ("policy loss", "value loss"):
        below.plot(cycles, column[name], marker="o", label=name)
    below.set_xlabel("cycle")
    for axes in (above, below):
        axes.legend()
        axes.grid(alpha=0.3)
        axes.locator_params(axis="x", integer=True)
    save_figure(figure, folder / "progress.png")


def prepare(folder: Path, model: str) -> None:
    """Makes the folder of a loop with its first network, unless it is there.

    Raises:
        LoopError: the folder has other files.
        OSError: a file cannot be read or written.
    """
    best = folder / "best"
    if best.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    foreign = [path.name for path in folder.iterdir() if path.name[0] != "."]
    if foreign and not {*foreign} <= {"reinforce.json", "start"}:
        raise LoopError(
            f"{folder} has files of something else, such as {min(foreign)}. Choose a new folder."
        )
    for name in ("start", "best"):
        with open(model, "rb") as source, write_beside(folder / name) as file:
            shutil.copyfileobj(source, file)
