"""The player with a Monte-Carlo tree search, guided by a network with policy and value.

Source of the idea: 「将棋AIで学ぶディープラーニング」, the chapter on Monte-Carlo tree search.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Sequence
from typing import Any, Callable

import numpy
import shogi

from pydlshogi import rules
from pydlshogi.inference.backend import OWN
from pydlshogi.player.batch_sizes import default_batch_size, default_batches
from pydlshogi.player.clock import Delays, Timer
from pydlshogi.player.engine_options import POLICY_LEVEL, mcts_options, search_numbers
from pydlshogi.player.levels import LEVELS, SECONDS, Level, shares
from pydlshogi.player.network_player import NetworkPlayer
from pydlshogi.player.opening_book import BookError, BookMove, OpeningBook
from pydlshogi.player.search_end import is_done, is_settled
from pydlshogi.player.search_info import (
    Reports,
    book_info,
    info_lines,
    mate_info,
    ordered,
    why_unknown,
)
from pydlshogi.uct.boards import board_library, libraries_passed_over, make_search_board
from pydlshogi.uct.compiler import IS_COMPILED
from pydlshogi.uct.core import LOSS
from pydlshogi.uct.dfpn import MateSearch
from pydlshogi.uct.evaluation import Answer
from pydlshogi.uct.game import LAST_OCCURRENCE, Game
from pydlshogi.uct.line import Candidate, best_lines, candidates
from pydlshogi.uct.mate import find_mate
from pydlshogi.uct.move import from_usi, label_table, to_usi
from pydlshogi.uct.search import Search, compile_search, must_compile
from pydlshogi.uct.settings import Settings
from pydlshogi.uct.tree import Node
from pydlshogi.usi.protocol import Go, end_info

__all__ = ["MCTSPlayer"]

#: The occurrence of a position that ends the game in the tree. In an analysis (``go infinite``),
#: it is that of the rules.
_OCCURRENCE_IN_GAME = 2

#: More visits than any search makes.
_UNLIMITED = 10**12

#: Number of visits if a move has no limits, as in the book's players.
_DEFAULT_PLAYOUTS = 300


class MCTSPlayer(NetworkPlayer):
    """Plays the best move of a Monte-Carlo tree search, usually the most visited one."""

    name = "mcts_player"
    default_options = staticmethod(mcts_options)
    default_go = Go(nodes=_DEFAULT_PLAYOUTS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The search must not refer to the player strongly: the thread of its evaluations ends
        # with the player.
        player = weakref.proxy(self)
        self._search = Search(lambda planes: player._run_network(planes), Settings())
        self._own_board = self.board  # made by this player, not by a script
        self._has_told_board = False
        self._book = OpeningBook()
        self._delays = Delays()
        self._level: Level | None = None  # that of the present move

    def check_network(self) -> None:
        """Refuses a network without a policy head, and warns of one without a value head.

        It also says what computes the network, if this package does not.
        """
        self.refuse_without_policy()
        if not self._evaluator.has_value:
            self.send(
                f"info string model file {self.model_path()} has no value head: the engine plays "
                "by its policy alone. For a search choose a modelfile of the network "
                "policy_value."
            )
        if self._evaluator.backend != OWN:
            self.send(f"info string the network is computed by {self._evaluator.backend}")
        self._search.forget()
        self._search.plane_num = self._evaluator.plane_num

    def backend(self) -> str:
        """Returns what the option ``backend`` chooses."""
        return self.options["backend"]

    def warm_up(self) -> None:
        """Evaluates a batch in the thread of the evaluations, which prepares a GPU for itself."""
        planes = self._evaluator.planes(shogi.Board())
        self._search.warm_up(numpy.stack([planes] * self._batch_size()))

    def prepare(self) -> None:
        """Loads the network and the book, unless they are loaded already."""
        super().prepare()
        self._warn_of_level()
        self._load_book()
        label_table()  # the first call takes 50 ms, and a search could not stop meanwhile
        if must_compile():
            self.send("info string the search is compiled; only the first start takes so long")
        compile_search()
        if not self._has_told_board:
            for sentence in libraries_passed_over():
                self.send(f"info string {sentence}")
            self.send(f"info string the search uses the board of {board_library()}")
            if not IS_COMPILED:
                self.send(
                    "info string numba is not installed: the search takes more time. Install it: "
                    "python -m pip install numba"
                )
            self._has_told_board = True

    def _warn_of_level(self) -> None:
        """Says that a network without a value head cannot search."""
        level = LEVELS.get(self.options["Level"])
        if level and level.visits > 1 and not self._evaluator.has_value:
            self.send(
                f"info string Level {self.options['Level']} needs a value head: the engine plays "
                f"the policy's best move. Choose a level up to {POLICY_LEVEL}, or a modelfile of "
                "the network policy_value."
            )

    def _load_book(self) -> None:
        """Reads the book, unless it is read already."""
        file = self.options["Book_File"]
        try:
            self._book.load(self._folder / file if file else None)
        except BookError as error:
            if self.options["OwnBook"]:
                raise
            self.send(f"info string {error}")

    def new_game(self) -> None:
        """Drops the tree. Its evaluations stay known while there is room for them."""
        self._search.tree.clear()

    def close(self) -> None:
        """Ends the thread of the evaluations."""
        self._search.close()

    def set_position(self, sfen: str | None, moves: list[str]) -> None:
        """Sets up the board, and breaks the reference cycles of the own board that it replaces."""
        before = self.board
        super().set_position(sfen, moves)
        if self.board is not before:
            if before is self._own_board:
                rules.untie(before)
            self._own_board = self.board

    def choose(self, go: Go) -> str:
        """Declares, plays from the book, searches, or resigns."""
        self._level = self._level_of(go)
        visits = self._level.visits if self._level else None
        limits = [go.nodes, self.options["nodes"] or None, visits]
        given = [limit for limit in limits if limit is not None]
        go = dataclasses.replace(go, nodes=min(given, default=None))
        margin = self.options["Byoyomi_Margin"] / 1000
        timer = Timer(go, self.board.turn, self._ply(), margin, self._delays)
        declares, has_move = self._declares(), rules.has_legal_move(self.board)
        if declares:
            self.send(end_info("mate 1"))
            self.send("info string the 27-point declaration holds")
        elif not has_move:
            self.send(end_info("mate -0"))
            self.send("info string the side to move has no legal move")
        if not has_move or (declares and not go.infinite):
            return "win" if declares else "resign"
        if not self._loaded:  # a GUI without isready
            self.prepare()
            timer.wait_for_first_answer()
        book_move = self._book_move(go)
        if book_move:
            return self._play_book(book_move)
        self._begin(go)
        nodes = self._run(go, timer)
        answer = self._bestmove(go, timer, nodes)
        timer.end()
        return "win" if declares else answer

    def _declares(self) -> bool:
        """Says whether the side to move may declare."""
        return self.options["declaration_win"] and rules.can_declare_win(self.board)

    def is_endless(self, go: Go) -> bool:
        """Says whether the search has no limit of its own."""
        if go.mate:  # no other limit has an effect on a mate search
            return go.mate_ms is None
        return not (go.has_limit or self.options["nodes"] or self._level_of(go))

    def _level_of(self, go: Go) -> Level | None:
        """Returns the level at which to play; None for full strength."""
        if go.infinite or go.mate or go.nodes is not None:
            return None
        return LEVELS.get(self.options["Level"])

    def find_mate(self, go: Go) -> str:
        """Searches a mate by df-pn, in the part of the tree's memory that is free.

        If this is less than half, the tree is dropped, and the search has one half.
        """
        seconds = None if go.mate_ms is None else go.mate_ms / 1000
        timer = Timer(Go(infinite=True, stop=go.stop, time=go.time), self.board.turn, 0, 0.0)
        tree, memory = self._search.tree, Settings(megabytes=self.options["USI_Hash"]).tree_bytes()
        free = memory - tree.allocated
        if free < memory / 2:
            tree.forget()
            free = memory / 2
        # The library's search, in a process of its own, has one half of it.
        search = MateSearch(self._make_game().board, int(free / 2))
        reports = self._make_reports(timer, lambda: self.send(mate_info(search, timer.elapsed())))

        def is_stopped() -> bool:
            reports.send_if_due()
            return timer.is_over() or (seconds is not None and timer.elapsed() >= seconds)

        line = find_mate(search, is_stopped, int(free / 2))
        self.send(mate_info(search, timer.elapsed(), line or ()))
        if line is None:
            self.send(f"info string {why_unknown(search, go)}")
        search.free()
        if line is None:
            return "timeout"
        return " ".join(map(to_usi, line)) or "nomate"

    # The search

    def _run_network(self, planes: numpy.ndarray) -> Answer:
        """Runs the network, in any thread."""
        evaluation = self.evaluate_planes(planes)
        assert evaluation.logits is not None  # by check_network
        return evaluation.logits, evaluation.wins

    def _begin(self, go: Go) -> None:
        """Sets up the search of the position on the board."""
        game, settings = self._make_game(), self._settings(go)
        moves = [from_usi(move) for move in self._moves]
        root_moves = self._root_moves(go.searchmoves)
        tree = self._search.tree
        tree.move_to((self._sfen, settings), moves, keep=go.ponder)
        if self._level:
            tree.clear()  # a level has only its own visits
        elif root_moves is not None and not root_moves.intersection(tree.root.mate[:1]):
            tree.clear()  # its root has all moves
        self._search.begin(game, settings, root_moves)

    def _run(self, go: Go, timer: Timer) -> int:
        """Searches until the time is over, a limit is reached, or the choice is settled.

        Returns:
            Number of visits.
        """
        search, visits_before = self._search, self._search.root.visits
        max_visits = visits_before + self._max_nodes(go)
        is_over = self._make_stop_check(timer, visits_before)
        try:
            while not (
                is_over()
                or is_done(search, go, max_visits)
                or is_settled(search.root, go, timer, search.root.visits - visits_before)
            ):
                search.step(max_visits, is_over)
            search.finish(is_over)
        except MemoryError:
            self.send("info string the memory is full: the search ends. Lower USI_Hash")
            search.give_up()
            # Moves of a playout may still be on the search's board.
            search.begin(self._make_game(), root_moves=self._root_moves(go.searchmoves))
        finally:
            search.give_up()
        return search.root.visits - visits_before

    def _make_stop_check(self, timer: Timer, visits_before: int) -> Callable[[], bool]:
        """Makes the function that the search calls every few milliseconds.

        It sends the ``info`` lines when they are due, and says whether the search must end now.
        """
        root = self._search.root
        reports = self._make_reports(
            timer, lambda: self._report(timer, root.visits - visits_before)
        )

        def is_over() -> bool:
            reports.send_if_due()
            is_over = timer.is_over() or (self._level and timer.spent() >= SECONDS)
            return bool(is_over) and (root.is_expanded or timer.is_late())

        return is_over

    def _bestmove(self, go: Go, timer: Timer, nodes: int) -> str:
        """Shows the result and returns the text after ``bestmove``."""
        lines = best_lines(self._search, 1)
        if not lines:
            self.send("info string the network has not answered in time: the move is not searched")
            return to_usi(self._search.any_move())
        best = lines[0]
        picked = None if go.infinite else self._picked()
        threshold = self.options["resign_threshold"] / 100
        resigns = self._evaluator.has_value and best.expected() < threshold
        if picked is not None and picked != best.moves[0] and not resigns:
            is_level = self._level and self._level.temperature
            name = f"Level {self.options['Level']}" if is_level else "random_plies"
            source = "policy" if is_level and nodes == 1 else "visits"
            self.send(f"info string {name}: {to_usi(picked)} is picked by the {source}")
            best = best_lines(self._search, 1, picked)[0]
        # Some programs take the score from the line before bestmove.
        self._report(timer, nodes, picked)
        if resigns:
            return "resign"
        words = [to_usi(move) for move in best.moves[:2]]
        if len(words) == 1 or not self.options["USI_Ponder"]:
            return words[0]
        return f"{words[0]} ponder {words[1]}"

    def _picked(self) -> int | None:
        """Picks a random move, as the level or ``random_plies`` want it; None for the best."""
        root, level = self._search.root, self._level
        if not (level and level.temperature):
            return self._picked_by_visits()
        if level.visits > 1 and not self._evaluator.has_value:
            return None
        rows = _not_lost(root)
        parts = shares([row.prior for row in rows], [row.visits for row in rows])
        return rows[level.draw(parts, self.random())].move if rows else None

    def _picked_by_visits(self) -> int | None:
        """Picks a random move, in proportion to the visits; None after ``random_plies`` moves."""
        root = self._search.root
        if self._ply() >= self.options["random_plies"] or root.proof:
            return None
        rows = _not_lost(root)
        # After a single visit, the policy decides.
        for weights in ([row.visits for row in rows], [row.prior for row in rows]):
            if any(weights):
                parts = numpy.array(weights, numpy.float64)
                return rows[self.random().choice(len(rows), p=parts / parts.sum())].move
        return None

    def _make_reports(self, timer: Timer, send: Callable[[], None]) -> Reports:
        """Prepares the ``info`` lines during a search."""
        return Reports(timer, self.options["PV_Interval"] / 1000, send)

    def _report(self, timer: Timer, nodes: int, played: int | None = None) -> None:
        """Sends the ``info`` lines; ``multipv 1`` is the move played, if it is given."""
        lines = best_lines(self._search, self.options["MultiPV"], played)
        for line in info_lines(
            self._search,
            ordered(lines, self._search),
            seconds=timer.elapsed(),
            nodes=nodes,
            has_value=self._evaluator.has_value,
        ):
            self.send(line)

    # Position and settings of the search

    def _ply(self) -> int:
        """Number of plies played."""
        return self.board.move_number - 1

    def _make_game(self) -> Game:
        """Sets up the game on a board of the search."""
        self._take_over_board()
        sfen = self._sfen
        if sfen is not None and len(sfen.split()) == 3:
            sfen += " 1"
        moves = [from_usi(move) for move in self._moves]
        return Game(make_search_board(sfen, self.board), moves, self._ply() - len(moves))

    def _root_moves(self, searchmoves: Sequence[str]) -> frozenset[int] | None:
        """Returns the moves to choose from; None for all.

        Moves that ``searchmoves`` does not name, and moves that lose at once by perpetual check,
        are left out.
        """
        legal = rules.legal_moves(self.board)
        allowed = self._allowed(legal, tuple(searchmoves))
        if rules.may_repeat(self.board):
            allowed = [
                move
                for move in allowed
                if rules.repetition_after(self.board, move) != rules.Repetition.LOSS
            ] or allowed
        if len(allowed) == len(legal):
            return None
        return frozenset(from_usi(move.usi()) for move in allowed)

    def _max_nodes(self, go: Go) -> int:
        """Largest number of visits. Without a value head it is 1: it shows the whole policy."""
        if not self._evaluator.has_value:
            return 1
        return _UNLIMITED if go.nodes is None else max(1, go.nodes)

    def _batch_size(self) -> int:
        """Returns the option's number, or the one that 0 stands for."""
        return self.options["batch_size"] or default_batch_size(
            self.device, self._evaluator.backend
        )

    def _settings(self, go: Go) -> Settings:
        """Reads the settings of the search from the options."""
        options = self.options
        # After the limit, the GUI plays on without it, and so does the search.
        draw_ply = options["Draw_Ply"] if options["Draw_Ply"] > self._ply() else 0
        color = self.board.turn
        value = options["Draw_Value_White" if color else "Draw_Value_Black"] / 1000
        settings = Settings(
            batch_size=self._batch_size(),
            batches=default_batches(self.device, self._evaluator.backend),
            root_mate=options["Mate_Root_Search"],
            line_mate=options["Mate_PV_Search"],
            # Where a declaration holds, an analysis shows what the moves are worth.
            declaration=options["declaration_win"] and not self._declares(),
            draw_black=1 - value if color else value,
            draw_ply=draw_ply,
            occurrences=LAST_OCCURRENCE if go.infinite else _OCCURRENCE_IN_GAME,
            megabytes=options["USI_Hash"],
            **search_numbers(options),  # type: ignore[arg-type]
        )
        return self._level.settings(settings) if self._level else settings

    def _book_move(self, go: Go) -> BookMove | None:
        """Chooses a move of the book, unless ``go`` asks for an analysis or for certain moves."""
        if not self.options["OwnBook"] or go.infinite or go.searchmoves:
            return None
        return self._book.choose(self.board, self.random())

    def _play_book(self, move: BookMove) -> str:
        """Shows a book move and returns the text after ``bestmove``."""
        self.send(f"info string book move {move.move}, played {move.times} times")
        self.send(book_info(move))
        if self.options["USI_Ponder"] and move.answer:
            return f"{move.move} ponder {move.answer}"
        return move.move


def _not_lost(root: Node) -> list[Candidate]:
    """Lists the moves of a root without those that are proven to lose; none if it is proven."""
    if root.proof:
        return []
    return [row for row in candidates(root) if not (row.proof and row.proof.outcome == LOSS)]
