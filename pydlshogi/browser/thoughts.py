"""What the models think of positions and games, computed in the process of the server."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import shogi

from pydlshogi.analysis import USUAL_SECONDS
from pydlshogi.analysis.analyzed import analyze
from pydlshogi.analysis.opinion import Network, Opinion, seen_by_black
from pydlshogi.analysis.pictures import page_of_game
from pydlshogi.analysis.record import GameRecord
from pydlshogi.browser.choices import Model
from pydlshogi.browser.game import GameError
from pydlshogi.drawing.notation import line_text, marked_move_text
from pydlshogi.drawing.page import render_page
from pydlshogi.rules import can_declare_win

#: Moves of an opinion, lines of a search, moves of a line, and filters that are shown.
_MOVES, _LINES, _LINE_MOVES, _FILTERS = 8, 5, 8, 12

#: Opinions that are remembered.
_MOST = 20000

#: Seconds between two reports of a search.
_PAUSE = 0.3


class Study:
    """A game that a network analyzes as ``analyze_kifu`` does: :meth:`steps`, then :meth:`page`."""

    def __init__(self, network: Network, record: GameRecord) -> None:
        self._network, self._record = network, record
        self._seconds = USUAL_SECONDS if network.can_search() else 0.0

    def steps(self) -> Iterator[dict[str, Any]]:
        """Analyzes the game; yields how many positions are ``done`` ``of`` all, and ``ready``."""
        from pydlshogi.analysis.searcher import opinions_of

        opinions, total = [], len(self._record.moves) + 1
        for opinion in opinions_of(self._network, self._record, self._seconds):
            opinions.append(opinion)
            yield {"done": len(opinions), "of": total, "ready": False}
        self._game = analyze(self._record, opinions)
        yield {"done": total, "of": total, "ready": True}

    def page(self, language: str) -> str:
        """Returns the page as HTML."""
        page = page_of_game(self._game, self._network.name, self._seconds, language)
        return render_page(page, language)


class Thoughts:
    """The opinions of the models, which the browser chooses by their numbers.

    The networks are loaded when they are first asked.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = models
        self._networks: dict[int, Network] = {}
        self._known: dict[tuple[int, str], dict[str, Any]] = {}
        self._lock = threading.Lock()

    def opinions(
        self, model: int, record: GameRecord, plies: Sequence[int]
    ) -> list[dict[str, Any]]:
        """Gives the opinion of a network alone on the positions of a game after ``plies`` moves.

        For each position ``win`` is Black's chance or None, and ``moves`` have ``usi``, ``text``
        and ``p``, the best first. Raises UserError if the model cannot be used.
        """
        words = [record.start.sfen(), *(move.usi() for move in record.moves)]
        keys = {ply: (model, " ".join(words[: ply + 1])) for ply in plies}
        found = {ply: self._known[key] for ply, key in keys.items() if key in self._known}
        for ply, board in enumerate(record.boards()):
            if ply in keys and ply not in found:
                opinion = self._network(model).opinions([board])[0]
                found[ply] = self._known[keys[ply]] = _described(board, opinion)
        with self._lock:
            while len(self._known) > _MOST:
                del self._known[next(iter(self._known))]
        return [found[ply] for ply in plies]

    def lines(
        self, model: int, record: GameRecord, seconds: float
    ) -> Iterator[list[dict[str, Any]]]:
        """Searches the last position of a game; yields the best lines again and again.

        Each line has ``win``, Black's chance; ``nodes``, the visits of the search; ``moves`` in
        USI notation and their ``texts``, both empty where the side to move may declare victory.

        Raises:
            GameError: The model has no value, so that it cannot search.
        """
        if not (self._models[model].has_value and self._models[model].has_policy):
            raise GameError("This model cannot search: it has no value or no policy.")
        return self._lines(model, record, seconds)

    def _lines(
        self, model: int, record: GameRecord, seconds: float
    ) -> Iterator[list[dict[str, Any]]]:
        from pydlshogi.analysis.searcher import Searcher

        board, searcher = record.board(), Searcher(self._network(model), seconds)
        for opinion in searcher.better_opinions(record, _PAUSE):
            found = [
                {
                    "win": seen_by_black(row.value, board.turn),
                    "nodes": opinion.nodes,
                    "moves": [move.usi() for move in row.line[:_LINE_MOVES]],
                    "texts": line_text(board, list(row.line[:_LINE_MOVES])).split(" "),
                }
                for row in opinion.candidates[:_LINES]
                if row.line and row.value is not None
            ]
            won: dict[str, Any] = {"win": 1.0 - board.turn, "nodes": 0, "moves": [], "texts": []}
            yield found or [won] * can_declare_win(board)

    def study(self, model: int, record: GameRecord) -> Study:
        """Prepares the analysis of a game."""
        return Study(self._network(model), record)

    def planes(self, model: int, board: shogi.Board) -> list[dict[str, Any]]:
        """Returns the input planes: ``name``, ``side`` (own or opponent) and 81 ``values``.

        The squares go from left to right and down, as Black sees the board.
        """
        from pydlshogi.drawing.planes import cells
        from pydlshogi.features import SIDE_PLANE_NUM

        planes = self._network(model).evaluator.planes(board)
        names = {
            c.plane: (c.label, "own" if c.plane < SIDE_PLANE_NUM else "opponent") for c in cells()
        }
        found = []
        for number, plane in enumerate(planes):
            name, side = names.get(number, ("", "history"))
            found.append({"name": name, "side": side, "values": _squares(plane, board.turn)})
        return found

    def filters(self, model: int, board: shogi.Board, square: int | None) -> list[dict[str, Any]]:
        """Returns the most active filters of the first layer: ``name`` and 81 ``values``, 0 to 1.

        With a square, they are those that are the most active there.
        """
        evaluator = self._network(model).evaluator
        layer = evaluator.first_layer(evaluator.planes(board)[None])
        if layer is None:
            return []
        maps = {n: _squares(values, board.turn) for n, values in enumerate(layer[0])}
        strength = {n: max(v) if square is None else v[square] for n, v in maps.items()}
        best = sorted(maps, key=lambda n: -strength[n])[:_FILTERS]
        most = max([max(maps[n]) for n in best] + [1e-6])
        return [
            {"name": f"{n}", "values": [round(value / most, 3) for value in maps[n]]}
            for n in best
            if strength[n] > 0
        ]

    def _network(self, number: int) -> Network:
        """Loads a model once."""
        with self._lock:
            if number not in self._networks:
                from pydlshogi.device import select_device
                from pydlshogi.inference.evaluator import Evaluator
                from pydlshogi.layers.cpu.threads import limit_blas

                limit_blas()
                model = self._models[number]
                evaluator = Evaluator(model.path, select_device(None))
                self._networks[number] = Network(evaluator, model.name)
            return self._networks[number]


def _described(board: shogi.Board, opinion: Opinion) -> dict[str, Any]:
    return {
        "win": seen_by_black(opinion.win, board.turn),
        "moves": [
            {"usi": m.move.usi(), "text": marked_move_text(board, m.move), "p": m.probability}
            for m in opinion.candidates[:_MOVES]
        ],
    }


def _squares(plane: Any, turn: int) -> list[float]:
    """Returns a plane, which is seen from the side to move, as Black sees it."""
    values: list[float] = [round(float(value), 3) for value in plane.reshape(-1)]
    return values[::-1] if turn == shogi.WHITE else values
