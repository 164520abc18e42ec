"""What the models think of positions, computed in the process of the server."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import shogi

from pydlshogi.browser.choices import Model
from pydlshogi.drawing.notation import marked_move_text

#: Moves of an opinion, and filters, that are shown.
_MOVES, _FILTERS = 8, 12

#: Opinions that are remembered.
_MOST = 20000


class Thoughts:
    """The opinions of the models; the networks are loaded when they are first asked.

    Args:
        models: The models, which the browser chooses by their numbers.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = models
        self._networks: dict[int, Any] = {}
        self._known: dict[tuple[int, str], dict[str, Any]] = {}
        self._lock = threading.Lock()

    def opinions(
        self, model: int, start: str, moves: Sequence[str], plies: Sequence[int]
    ) -> list[dict[str, Any]]:
        """Gives an opinion on positions of a game.

        Args:
            model: Number of the model.
            start: SFEN of the start position.
            moves: Legal moves from there, in USI notation.
            plies: Numbers of moves before each position, in rising order.

        Returns:
            For each position ``win``, Black's chance or None, and ``moves``: ``usi``, ``text`` and
            ``p``, the best first.

        Raises:
            UserError: The model cannot be used.
        """
        with self._lock:
            keys = {ply: (model, " ".join([start, *moves[:ply]])) for ply in plies}
            board = shogi.Board(start)
            wanted = {ply for ply in plies if keys[ply] not in self._known}
            last = max(wanted, default=-1)
            for ply in range(last + 1):
                if ply:
                    board.push_usi(moves[ply - 1])
                if ply in wanted:
                    self._remember(keys[ply], board)
            return [self._known[keys[ply]] for ply in plies]

    def _remember(self, key: tuple[int, str], board: shogi.Board) -> None:
        opinion = self._network(key[0]).opinions([board])[0]
        win = opinion.win
        if len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        self._known[key] = {
            "win": 1 - win if win is not None and board.turn == shogi.WHITE else win,
            "moves": [
                {"usi": m.move.usi(), "text": marked_move_text(board, m.move), "p": m.probability}
                for m in opinion.candidates[:_MOVES]
            ],
        }

    def planes(self, model: int, board: shogi.Board) -> list[dict[str, Any]]:
        """Returns the input planes: ``name``, ``side`` (own or opponent) and 81 ``values``.

        The squares go from left to right and down, as Black sees the board.
        """
        from pydlshogi.drawing.planes import cells
        from pydlshogi.features import SIDE_PLANE_NUM

        with self._lock:
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

        Args:
            model: Number of the model.
            board: The position.
            square: The filters are the most active there; None: anywhere.
        """
        with self._lock:
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

    def _network(self, number: int) -> Any:
        """Loads a model once. The lock is held."""
        if number not in self._networks:
            from pydlshogi.analysis.opinion import Network
            from pydlshogi.device import select_device
            from pydlshogi.inference.evaluator import Evaluator
            from pydlshogi.layers.cpu.threads import limit_blas

            limit_blas()
            model = self._models[number]
            evaluator = Evaluator(model.path, select_device(None))
            self._networks[number] = Network(evaluator, model.name)
        return self._networks[number]


def _squares(plane: Any, turn: int) -> list[float]:
    """Returns a plane, which is seen from the side to move, as Black sees it."""
    values: list[float] = [round(float(value), 3) for value in plane.reshape(-1)]
    return values[::-1] if turn == shogi.WHITE else values
