"""Plays the levels of mcts_player against each other, and rates them.

    python benchmarks/levels.py [PLAYER-PLAYER ...] [--games NUMBER] [--output run/levels]

A player is a level (1 to 20), ``random`` for a random mover, or a level that is tried out, such as
``temperature=1.5,bound=0.01``. Without players, each level meets the next, and level 1 the random
mover. A pair of games begins with the same 12 moves, drawn from the policy, and each side plays
Black once. The games are played in threads whose positions are evaluated in one batch.

Level 20 searches ``--seconds`` a move, so its games come last, one at a time; no other program
should run then. The other levels end at their visits here, not at the time.

Each pair of games is a line of the file games.jsonl in the output folder, with the numbers of
its players, so that a changed level has new games. The same command continues. All games in the
file of the players named are rated together (R. A. Bradley and M. E. Terry, Biometrika 39, 1952).
The intervals follow from the variance between pairs of games.
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import collections
import concurrent.futures
import dataclasses
import itertools
import json
import math
import queue
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from pydlshogi import files  # noqa: E402
from pydlshogi.bar import bar  # noqa: E402
from pydlshogi.commands.arguments import (  # noqa: E402
    ArgumentParser,
    file_name,
    named_path,
    positive_int,
    positive_number,
)
from pydlshogi.commands.program import program  # noqa: E402
from pydlshogi.device import select_device  # noqa: E402
from pydlshogi.errors import UserError  # noqa: E402
from pydlshogi.inference.evaluator import Evaluator  # noqa: E402
from pydlshogi.layers.cpu.threads import compute_with, get_threads  # noqa: E402
from pydlshogi.player.engine_options import FULL_LEVEL  # noqa: E402
from pydlshogi.player.levels import LEVELS, Level, shares  # noqa: E402
from pydlshogi.player.strategy import softmax  # noqa: E402
from pydlshogi.uct.boards import make_search_board  # noqa: E402
from pydlshogi.uct.core import LOSS  # noqa: E402
from pydlshogi.uct.evaluation import Answer  # noqa: E402
from pydlshogi.uct.game import LAST_OCCURRENCE, Game  # noqa: E402
from pydlshogi.uct.inputs import Inputs  # noqa: E402
from pydlshogi.uct.line import best_lines, candidates  # noqa: E402
from pydlshogi.uct.move import label_table  # noqa: E402
from pydlshogi.uct.search import Search, compile_search  # noqa: E402
from pydlshogi.uct.settings import Settings  # noqa: E402

#: Games of two players, and games if one of them is above a level, because they take longer.
GAMES, LONG_GAMES, LONG_ABOVE = 400, 100, 15

#: Plies drawn from the policy, and plies after which a game is a draw.
OPENING, MOST_PLIES = 12, 320

#: More visits than a search makes in its seconds.
UNLIMITED = 10**9

RANDOM = "random"

#: The whole numbers of a level.
WHOLE = ("visits", "mate_plies")

#: The columns of the table. The probability is that of the moves under the policy, on average.
COLUMNS = (
    *("level", "visits", "temperature", "bound", "mate"),
    *("probability", "rating", "step", "score", "games"),
)

#: Positions in a batch, at most.
BATCH = 64


class Player(NamedTuple):
    """A player: a level with a name, or without a level the random mover."""

    name: str
    level: Level | None

    def describe(self) -> str:
        """Names the numbers of the player, in the file of the games."""
        numbers = dataclasses.asdict(self.level) if self.level else {}
        return " ".join(f"{key}={value:g}" for key, value in numbers.items()) or self.name


def is_full(level: Level | None) -> bool:
    """Tells whether a level searches until its time is over."""
    return level is not None and level.visits == UNLIMITED


class Evaluations:
    """An evaluator for many threads: the positions that wait are evaluated in one batch.

    Attributes:
        plane_num: Number of planes of a position.
        stop: Ends the games: their next evaluation raises CancelledError.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self.plane_num = evaluator.plane_num
        self.stop = threading.Event()
        self._evaluator = evaluator
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def evaluate(self, planes: numpy.ndarray) -> Answer:
        """Evaluates positions, (n, plane_num, 9, 9) float32."""
        if self.stop.is_set():
            raise concurrent.futures.CancelledError
        future: concurrent.futures.Future[Answer] = concurrent.futures.Future()
        self._waiting.put((planes.copy(), future))
        return future.result()

    def _work(self) -> None:
        while True:
            tasks = [self._waiting.get()]
            size = len(tasks[0][0])
            while size < BATCH and not self._waiting.empty():
                tasks.append(self._waiting.get())
                size += len(tasks[-1][0])
            try:
                logits, wins = self._evaluator.evaluate(numpy.concatenate([p for p, _ in tasks]))
                assert logits is not None  # by main
            except BaseException as error:
                for _, future in tasks:
                    future.set_exception(error)
                continue
            start = 0
            for planes, future in tasks:
                rows = slice(start, start + len(planes))
                future.set_result((logits[rows], None if wins is None else wins[rows]))
                start += len(planes)


class Table:
    """A pair of games between two players.

    Args:
        evaluations: Evaluates the positions.
        seed: Seed of the opening and of the random moves.
        seconds: Time of level 20 for a move.
    """

    def __init__(self, evaluations: Evaluations, seed: int, seconds: float) -> None:
        self._evaluations, self._seconds = evaluations, seconds
        self._rng = numpy.random.default_rng(seed)
        self._search = Search(evaluations.evaluate, Settings(megabytes=64))
        self._search.plane_num = evaluations.plane_num

    def play(self, players: Sequence[Player]) -> dict[str, Any]:
        """Plays two games; returns what the file tells of them."""
        opening = self._draw_opening()
        games = [self._play(players, opening, black) for black in (0, 1)]
        likely = [sum((game[2][side] for game in games), []) for side in (0, 1)]
        return {
            "players": [player.describe() for player in players],
            "points": [points for points, _, _ in games],
            "plies": [plies for _, plies, _ in games],
            "moves": [len(side) for side in likely],
            "probability": [round(sum(side) / max(1, len(side)), 5) for side in likely],
        }

    def _draw_opening(self) -> list[int]:
        """Draws moves from the policy, until none of them ends the game."""
        while True:
            game, moves = Game(make_search_board()), []
            for _ in range(OPENING):
                legal, probabilities = self._policy(game)
                moves.append(int(legal[self._rng.choice(len(legal), p=probabilities)]))
                game.push(moves[-1])
                if self._result(game) is not None:
                    break
            else:
                return moves

    def _play(
        self, players: Sequence[Player], opening: list[int], black: int
    ) -> tuple[float, int, list[list[float]]]:
        """Plays a game; ``black`` is the first player's side.

        Returns:
            The points of the first player, the number of plies, and the probability of each
            player's moves under the policy.
        """
        moves, game = list(opening), Game(make_search_board(), opening)
        likely: list[list[float]] = [[], []]
        while (result := self._result(game)) is None:
            side = (game.ply + black) % 2
            move, probability = self._choose(players[side].level, game, moves)
            likely[side].append(probability)
            moves.append(move)
            game.push(move)
        side = (game.ply + black) % 2  # the side to move, for which the result holds
        return (1 - result if side else result), game.ply, likely

    def _result(self, game: Game) -> float | None:
        """The points of the side to move; None while the game goes on."""
        repetition = game.repetition(LAST_OCCURRENCE)
        if repetition:
            return (1 + repetition.outcome) / 2
        if game.board.can_declare():
            return 1.0
        if not len(game.board.moves()):
            return 0.0
        return 0.5 if game.ply >= MOST_PLIES else None

    def _policy(self, game: Game) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Returns the legal moves and their probabilities."""
        inputs = Inputs(1, self._evaluations.plane_num)
        inputs.add(game)
        moves = numpy.array(game.board.moves())
        logits, _ = self._evaluations.evaluate(inputs.planes())
        return moves, softmax(logits[0][label_table()[game.board.turn][moves]])

    def _choose(self, level: Level | None, game: Game, moves: list[int]) -> tuple[int, float]:
        """Chooses a move; returns it and its probability under the policy."""
        if level and level.visits > 1:
            return self._searched(level, moves)
        legal, probabilities = self._policy(game)
        if level is None:
            index = int(self._rng.integers(len(legal)))
        else:
            mate = game.board.mate(level.mate_plies) if level.mate_plies else None
            if mate:
                index = int((legal == mate.move).argmax())
            elif level.temperature:
                index = level.draw(probabilities, self._rng)
            else:
                index = int(probabilities.argmax())
        return int(legal[index]), float(probabilities[index])

    def _searched(self, level: Level, moves: list[int]) -> tuple[int, float]:
        """Chooses a move by a search."""
        search, is_timed = self._search, is_full(level)
        settings = Settings(megabytes=1024 if is_timed else 64)
        search.tree.clear()
        search.begin(
            Game(make_search_board(), moves), settings if is_timed else level.settings(settings)
        )
        end = time.perf_counter() + (self._seconds if is_timed else math.inf)
        while not (
            search.root.proof or search.root.visits >= level.visits or time.perf_counter() >= end
        ):
            search.step(level.visits)
        search.finish()
        move = best_lines(search, 1)[0].moves[0]
        rows = candidates(search.root)
        kept = [row for row in rows if not (row.proof and row.proof.outcome == LOSS)]
        if level.temperature and not search.root.proof:
            parts = shares([row.prior for row in kept], [row.visits for row in kept])
            move = kept[level.draw(parts, self._rng)].move
        # Priors are those of the search's temperature. A mate at the root needs none.
        priors = numpy.array([row.prior for row in rows]) ** settings.temperature
        places = [row.move for row in rows]
        return move, float(priors[places.index(move)] / priors.sum()) if rows else 1.0


class Rating(NamedTuple):
    """The ratings of players.

    Attributes:
        elo: (n,) relative to the first player.
        covariance: (n, n) of these.
    """

    elo: numpy.ndarray
    covariance: numpy.ndarray

    def step(self, low: int, high: int) -> tuple[float, float]:
        """Returns how much stronger a player is than another, and half of the 95 % interval."""
        c = self.covariance
        variance = c[low, low] + c[high, high] - 2 * c[low, high]
        return float(self.elo[high] - self.elo[low]), 1.96 * math.sqrt(variance)


def rate(number: int, results: Iterable[tuple[int, int, Sequence[float]]]) -> Rating:
    """Rates players by the model of Bradley and Terry; a draw is half a win and half a loss.

    As in :mod:`pydlshogi.match.elo`, a won and a lost pair of games are added for each two
    players that have met, and the variance is that between pairs.

    Args:
        number: Number of players. Only those that are connected by games can be compared.
        results: Two players, and the points of the first in a pair of games.
    """
    found = list(results)
    for met in {(a, b) for a, b, _ in found}:
        found += [(*met, (1.0, 1.0)), (*met, (0.0, 0.0))]
    first, second = (numpy.array([row[side] for row in found]) for side in (0, 1))
    points = numpy.array([sum(row[2]) for row in found])
    games = numpy.array([len(row[2]) for row in found])
    design = numpy.zeros((len(found), number))
    rows = numpy.arange(len(found))
    design[rows, first], design[rows, second] = 1, -1
    design = design[:, 1:]  # the first player's rating is 0
    strength = numpy.zeros(number - 1)
    for _ in range(100):  # Newton's method
        expected = 1 / (1 + numpy.exp(-(design @ strength)))
        curvature = (design.T * (games * expected * (1 - expected))) @ design
        inverse = numpy.linalg.pinv(curvature)
        step = inverse @ (design.T @ (points - games * expected))
        strength += numpy.clip(step, -1, 1)
        if abs(step).max() < 1e-9:
            break
    scores = design * (points - games * expected)[:, None]
    unit = 400 / math.log(10)
    covariance = numpy.zeros((number, number))
    covariance[1:, 1:] = unit**2 * inverse @ (scores.T @ scores) @ inverse
    return Rating(unit * numpy.append(0.0, strength), covariance)


def read_player(text: str) -> Player:
    """Reads a player: a level, ``random``, or the numbers of a level."""
    if text == RANDOM:
        return Player(text, None)
    if text == str(FULL_LEVEL):
        return Player(text, Level(visits=UNLIMITED, mate_plies=Settings().mate_plies))
    if text.isdecimal() and int(text) in LEVELS:
        return Player(text, LEVELS[int(text)])
    try:
        words = dict(word.split("=") for word in text.split(","))
        numbers: dict[str, Any] = {
            name: (int if name in WHOLE else float)(value) for name, value in words.items()
        }
        return Player(text, Level(**numbers))
    except (ValueError, TypeError):
        raise UserError(
            f"the player {text!r} is unknown. Write a level (1 to {FULL_LEVEL}), {RANDOM}, or the "
            "numbers of a level, such as temperature=1.5,bound=0.01."
        ) from None


@program("levels", interrupted="The same command continues.")
def main(argv: Sequence[str] | None = None) -> int:
    """Plays the games that are missing, and prints the table."""
    parser = ArgumentParser(prog="levels", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("meetings", nargs="*", metavar="PLAYER-PLAYER", help="default: all neighbours")
    several = f"{GAMES}, above level {LONG_ABOVE} {LONG_GAMES}"
    add("--games", type=positive_int, help=f"of two players (default: {several})")
    add("--seconds", type=positive_number, default=1.0, help="of level 20 (default: %(default)s)")
    add("--parallel", type=positive_int, default=32, help="pairs of games (default: %(default)s)")
    add("--model", type=file_name, help="default: the shipped model")
    add("--output", type=named_path, default=Path("run/levels"), metavar="FOLDER")
    arguments = parser.parse_args(argv)
    neighbours = [RANDOM, *map(str, LEVELS), str(FULL_LEVEL)]
    named = arguments.meetings or [f"{a}-{b}" for a, b in zip(neighbours, neighbours[1:])]
    meetings = [tuple(map(read_player, meeting.split("-", 1))) for meeting in named]
    if any(len(meeting) < 2 for meeting in meetings):
        parser.error("write two players with a hyphen between them, such as 3-4")
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / "games.jsonl"
    lines = read_lines(path)
    tasks = missing(meetings, lines, arguments.games)
    if tasks:
        compute_with(get_threads())
        model = arguments.model or files.shipped_model()
        evaluator = Evaluator(model, select_device(-1), "auto")
        if not (evaluator.has_policy and evaluator.has_value):
            raise UserError(f"{model} lacks a policy or a value. Choose a model with both.")
        evaluations = Evaluations(evaluator)
        compile_search()
        label_table()
        with open(path, "a", encoding="utf-8") as file:
            for line in play_all(tasks, evaluations, arguments.seconds, arguments.parallel):
                lines.append(line)
                print(json.dumps(line), file=file, flush=True)
    print_table(meetings, lines)
    return 0


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Reads the pairs of games, without a last line that was cut off."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    kept = text[: text.rfind("\n") + 1]
    if kept != text:
        path.write_text(kept, encoding="utf-8")
    return [json.loads(line) for line in kept.splitlines()]


Meeting = Any  # two players


def missing(
    meetings: Sequence[Meeting], lines: Sequence[dict[str, Any]], games: int | None
) -> list[tuple[Meeting, int]]:
    """Lists the pairs of games that are to be played: the meeting and the seed.

    ``games`` is the number of games of two players, None for the default.
    """
    known = {(*line["players"], line["seed"]) for line in lines}
    tasks = [
        (meeting, seed)
        for meeting in meetings
        for seed in range(-(-(games or usual_games(meeting)) // 2))
        if (*(player.describe() for player in meeting), seed) not in known
    ]
    return sorted(tasks, key=lambda task: task[1])


def usual_games(meeting: Meeting) -> int:
    """Returns how many games two players play by default."""
    levels = [int(player.name) for player in meeting if player.name.isdecimal()]
    return LONG_GAMES if max(levels, default=0) > LONG_ABOVE else GAMES


def play_all(
    tasks: Sequence[tuple[Meeting, int]], evaluations: Evaluations, seconds: float, parallel: int
) -> Iterable[dict[str, Any]]:
    """Plays pairs of games in threads, those on time one by one; yields each that is finished."""

    def work(meeting: Meeting, seed: int) -> dict[str, Any]:
        return {**Table(evaluations, seed, seconds).play(meeting), "seed": seed}

    timed = [task for task in tasks if any(is_full(player.level) for player in task[0])]
    others = [task for task in tasks if task not in timed]
    with bar(total=len(tasks)) as progress:
        for part, threads in ((others, parallel), (timed, 1)):
            pool = concurrent.futures.ThreadPoolExecutor(threads)
            jobs = [pool.submit(work, *task) for task in part]
            try:
                for job in concurrent.futures.as_completed(jobs):
                    yield job.result()
                    progress.update()
            except BaseException:
                evaluations.stop.set()
                raise
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def print_table(meetings: Sequence[Meeting], lines: Sequence[dict[str, Any]]) -> None:
    """Rates the players and prints a row for each of them."""
    players = list(dict.fromkeys(itertools.chain(*meetings)))
    numbers = {player.describe(): n for n, player in enumerate(players)}
    rows = [line for line in lines if all(name in numbers for name in line["players"])]
    if not rows:
        return
    rating = rate(
        len(players),
        [(*(numbers[name] for name in line["players"]), line["points"]) for line in rows],
    )
    moves: collections.Counter[str] = collections.Counter()
    likely: collections.Counter[str] = collections.Counter()
    for line in rows:
        for name, number, mean in zip(line["players"], line["moves"], line["probability"]):
            moves[name] += number
            likely[name] += number * mean
    print(f"| {' | '.join(COLUMNS)} |\n|:--{(len(COLUMNS) - 1) * '|--:'}|")
    for n, player in enumerate(players):
        name = player.describe()
        mean = f"{likely[name] / moves[name]:.2f}" if moves[name] else ""
        row = [player.name, *numbers_of(player.level), mean, f"{rating.elo[n]:.0f}"]
        for low in [a for a, b in meetings if b == player and a != player] or [None]:
            met = [
                line["points"] for line in rows if low and line["players"] == [low.describe(), name]
            ]
            games = sum(map(len, met))
            words = ["", "", ""]
            if low and games:
                step, margin = rating.step(players.index(low), n)
                score = 1 - sum(map(sum, met)) / games
                words = [f"{step:+.0f} ± {margin:.0f}", f"{100 * score:.1f} %", str(games)]
            print(f"| {' | '.join([*row, *words])} |")


def numbers_of(level: Level | None) -> list[str]:
    """Writes the visits, the temperature, the bound and the mate of a level, where they count."""
    if level is None:
        return [""] * 4
    visits = "" if level.visits == UNLIMITED else str(level.visits)
    return [
        visits,
        *(
            numpy.format_float_positional(x, trim="-") if x else ""
            for x in (level.temperature, level.bound, level.mate_plies)
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
