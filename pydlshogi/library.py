"""What the functions of :mod:`pydlshogi` return: models, opinions, games, pictures, boards."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import html
import importlib.util
import os
import pathlib
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import shogi

from pydlshogi.analysis.opinion import Network
from pydlshogi.analysis.opinion import Opinion as Thought
from pydlshogi.analysis.pictures import diagram_of, page_of_record, title_of
from pydlshogi.analysis.record import (
    AnalysisError,
    GameRecord,
    read_position,
    read_record,
)
from pydlshogi.drawing.words import LANGUAGES
from pydlshogi.player.position import start_and_moves

if TYPE_CHECKING:
    from pydlshogi.analysis.searcher import Searcher
    from pydlshogi.browser.server import BoardServer

Path = Union[str, "os.PathLike[str]"]

#: Seconds of a search without limits.
_SECONDS = 1.0


class LibraryError(AnalysisError):
    """An argument of the library cannot be used."""


class MoveProbability(NamedTuple):
    """A legal move in USI notation, and its probability among them by the policy."""

    move: str
    probability: float


class SearchedMove(NamedTuple):
    """What a search found of a legal move.

    Attributes:
        move: The move in USI notation.
        visits: Number of visits.
        value: Probability that the side to move wins with it; None without a visit.
        line: Best moves in USI notation, this one first.
        share: Share of the visits, which the arrows show.
    """

    move: str
    visits: int
    value: float | None
    line: list[str]
    share: float


class Position:
    """A position, with the game that led to it.

    Attributes:
        sfen: The position as SFEN.
        moves: The moves since the start, in USI notation.
    """

    def __init__(self, record: GameRecord) -> None:
        self._record = record
        self.sfen: str = record.board().sfen()
        self.moves = [move.usi() for move in record.moves]

    def board(self) -> shogi.Board:
        """Returns a board of python-shogi, with the moves on its stack."""
        return self._record.board()

    def __repr__(self) -> str:
        return f"Position({self.sfen!r})"

    def _repr_svg_(self) -> str:
        return show(self)._repr_svg_()


class Opinion:
    """What a model or a search thinks of a position.

    Attributes:
        position: The position.
        moves: The legal moves, the best first: of :class:`MoveProbability`, after a search of
            :class:`SearchedMove`. Empty at the end of a game, or without a policy head.
        value: Probability that the side to move wins; None without a value head.
        visits: Number of visits of the search; 0 without one.
    """

    def __init__(self, position: Position, thought: Thought, is_searched: bool = False) -> None:
        self.position, self._thought = position, thought
        self.value, self.visits = thought.win, thought.nodes
        self.moves: list[Any] = [
            SearchedMove(
                row.move.usi(),
                row.visits,
                row.value,
                [move.usi() for move in row.line],
                (row.probability or 0.0) if thought.nodes else 0.0,
            )
            if is_searched
            else MoveProbability(row.move.usi(), row.probability or 0.0)
            for row in thought.candidates
        ]

    def __repr__(self) -> str:
        best = f"best {self.moves[0].move}, " if self.moves else ""
        return f"Opinion({best}value {self.value}, visits {self.visits})"

    def _repr_svg_(self) -> str:
        return show(self.position, self)._repr_svg_()


class Model:
    """A model, loaded: see :func:`pydlshogi.load`.

    Attributes:
        name: Name of the file.
        has_policy, has_value: Which heads the network has. A search needs both.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._searcher: Searcher | None = None
        self.name: str = network.name
        self.has_policy: bool = network.evaluator.has_policy
        self.has_value: bool = network.evaluator.has_value

    def __repr__(self) -> str:
        return f"Model({self.name!r})"

    def evaluate(self, position: AnyPosition) -> Opinion:
        """Asks the network alone.

        Raises:
            UserError: The position is impossible.
        """
        return self.evaluate_all([position])[0]

    def evaluate_all(self, positions: Iterable[AnyPosition]) -> list[Opinion]:
        """Asks the network for many positions in few batches; a game gives all of its positions."""
        asked = [Position(_record_of(position)) for position in positions]
        thoughts = self._network.opinions(position.board() for position in asked)
        return [Opinion(*pair) for pair in zip(asked, thoughts)]

    def search(
        self, position: AnyPosition, *, seconds: float | None = None, nodes: int | None = None
    ) -> Opinion:
        """Searches a position for some seconds, or until the root has some visits.

        Whichever comes first; without both, for one second.

        Raises:
            UserError: The position is impossible, or the network has no policy or no value.
        """
        for limit in (seconds, nodes):
            if limit is not None and not limit > 0:
                raise LibraryError("a search needs a number above 0 of seconds or nodes.")
        if seconds is None and nodes is None:
            seconds = _SECONDS
        record = _record_of(position)
        if self._searcher is None:
            from pydlshogi.analysis.searcher import Searcher

            self._searcher = Searcher(self._network)
        self._searcher.limit(seconds, nodes)
        return Opinion(Position(record), self._searcher.opinion(record), is_searched=True)


class Game:
    """A recorded game: see :func:`pydlshogi.read`.

    Iterating gives all positions, from the start to the end.

    Attributes:
        players: Names of Black and White, empty if unknown.
        result: ``black`` or ``white`` for the winner, ``draw``, or None if unknown.
        end: CSA's word for the end, such as ``%TORYO``; None if unknown.
        start: The start position as SFEN.
        handicap: Its name, such as ``二枚落ち``; empty without one.
        moves: The moves in USI notation.
        times: Seconds of each move; None where they are unknown.
        comments: Comments by the number of the move, 0 for the start.
        event, date: As the record writes them; empty if unknown.
    """

    def __init__(self, record: GameRecord) -> None:
        self._record = record
        self.players = record.names
        self.result = "draw" if record.is_drawn else None
        if record.winner is not None:
            self.result = ("black", "white")[record.winner]
        self.end = record.end_mark
        self.start: str = record.start.sfen()
        self.handicap = record.handicap
        self.moves = [move.usi() for move in record.moves]
        self.times = record.seconds()
        self.comments = record.details.comments
        self.event, self.date = record.details.event, record.details.date

    def position(self, ply: int | None = None) -> Position:
        """Returns the position after ``ply`` moves; None: after all.

        Raises:
            UserError: The game is shorter.
        """
        length = len(self._record.board(ply).move_stack)
        return Position(dataclasses.replace(self._record, moves=self._record.moves[:length]))

    def __iter__(self) -> Iterator[Position]:
        return (self.position(ply) for ply in range(len(self.moves) + 1))

    def __repr__(self) -> str:
        return f"Game({title_of(self._record)}, {len(self.moves)} moves)"

    def _repr_html_(self) -> str:
        from pydlshogi.drawing.page import render_page

        page = render_page(page_of_record(self._record, self.times, [], [], "en"), "en")
        style = "width:100%;height:700px;border:0"
        return f'<iframe srcdoc="{html.escape(page)}" style="{style}"></iframe>'


class Picture:
    """A picture of a position: see :func:`pydlshogi.show`."""

    def __init__(self, diagram: Any, language: str) -> None:
        self._diagram, self._language = diagram, language

    def save(self, path: Path) -> None:
        """Writes a .png, .svg or .pdf file with matplotlib.

        Raises:
            UserError: The file cannot be written, or matplotlib or the font is missing.
        """
        from pydlshogi.drawing.board import save_board

        save_board(self._diagram, path, language=self._language)

    def _repr_svg_(self) -> str:
        from pydlshogi.drawing.board import board_svg

        return board_svg(self._diagram, language=self._language)


AnyPosition = Union[str, shogi.Board, Position, Opinion, Game]


class Board:
    """The board of :func:`pydlshogi.play`; a notebook shows it in the cell.

    Attributes:
        address: Address of the page.
    """

    def __init__(self, server: BoardServer, height: int) -> None:
        self._server, self._height = server, height
        self.address = server.address

    def close(self) -> None:
        """Ends the server and its engines. Unfinished games stay in their files."""
        self._server.shutdown()
        self._server.server_close()

    def __repr__(self) -> str:
        return f"Board({self.address!r})"

    def _ipython_display_(self) -> None:
        if not _is_on_colab():
            from IPython.display import IFrame, display  # type: ignore[import-not-found]

            display(IFrame(self.address, "100%", self._height))
            return
        from google.colab import output  # type: ignore[import-not-found]

        path = "/" + self.address.split("/", 3)[3]
        output.serve_kernel_port_as_iframe(self._server.server_port, path, height=self._height)


def load(model: Path | None, gpu: int | None, network: str | None) -> Model:
    """Loads a model."""
    from pydlshogi.device import select_device
    from pydlshogi.files import shipped_model
    from pydlshogi.inference.evaluator import Evaluator
    from pydlshogi.network.own import use

    if network is not None:
        use(network)
    path = shipped_model() if model is None else pathlib.Path(model)
    return Model(Network(Evaluator(path, select_device(gpu)), path.name))


def read(path: Path, number: int) -> Game:
    """Reads a game."""
    return Game(read_record(path, number))


def show(
    position: AnyPosition, opinion: Opinion | None = None, arrows: int = 5, language: str = "en"
) -> Picture:
    """Draws a position."""
    if language not in LANGUAGES:
        raise LibraryError(
            f"the language {language!r} is unknown. Choose {' or '.join(LANGUAGES)}."
        )
    board = _record_of(position).board()
    if opinion is not None and opinion.position.sfen.split()[:3] != board.sfen().split()[:3]:
        raise LibraryError("the opinion is on another position. Show it with its own position.")
    thought = None if opinion is None else opinion._thought
    return Picture(diagram_of(board, thought, arrows, language), language)


#: The board that was opened last.
_opened: list[Board] = []


def play(model: Path | list[Path] | None, port: int, height: int) -> Board:
    """Opens the board; the board before ends."""
    from pydlshogi.browser.choices import Choices, read_models
    from pydlshogi.browser.engines import Pool
    from pydlshogi.browser.hall import Hall
    from pydlshogi.browser.server import BoardServer
    from pydlshogi.files import games_folder

    while _opened:
        _opened.pop().close()
    paths = model if isinstance(model, list) else [] if model is None else [model]
    hall = Hall(Choices(read_models(paths)), games_folder(), Pool())
    in_notebook = _is_in_notebook()
    server = BoardServer(hall, "127.0.0.1", port, embedded=in_notebook)
    server.start()
    board = Board(server, height)
    _opened.append(board)
    if not in_notebook:
        import webbrowser

        print(board.address)
        # Some commands of $BROWSER end only with the browser.
        threading.Thread(target=webbrowser.open, args=(board.address,), daemon=True).start()
    return board


@atexit.register
def _end() -> None:
    """Ends the engines of the last board."""
    while _opened:
        with contextlib.suppress(OSError):
            _opened.pop().close()


def _record_of(position: Any) -> GameRecord:
    """Returns the game that ends with a position."""
    if isinstance(position, str):
        return read_position(position)
    if isinstance(position, (Position, Game)):
        return position._record
    if isinstance(position, Opinion):
        return position.position._record
    if isinstance(position, shogi.Board):
        moves = tuple(position.move_stack)
        start, _ = start_and_moves(position)
        return GameRecord(("", ""), shogi.Board(start or shogi.STARTING_SFEN), moves)
    raise LibraryError(
        f"{type(position).__name__} is no position. Give an SFEN, a text such as startpos moves "
        "7g7f, or a board of python-shogi."
    )


def _is_on_colab() -> bool:
    try:
        return importlib.util.find_spec("google.colab") is not None
    except ImportError:
        return False


def _is_in_notebook() -> bool:
    """Says whether a notebook's kernel runs this."""
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")
