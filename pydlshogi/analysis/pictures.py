"""Pictures of positions and games with a model's opinion."""

from __future__ import annotations

import shogi

from pydlshogi.analysis.game import AnalyzedGame, AnalyzedMove
from pydlshogi.analysis.opinion import Opinion
from pydlshogi.drawing.diagram import Arrow, Diagram
from pydlshogi.drawing.graph import Course
from pydlshogi.drawing.notation import marked_move_text
from pydlshogi.drawing.words import word

#: Less probable moves get no arrow.
_LEAST = 0.005

#: Least loss of winning probability of a marked move, and most marked moves.
_LOSS, _MOST_MARKED = 0.08, 5


def diagram_of(board: shogi.Board, opinion: Opinion | None, arrows: int, language: str) -> Diagram:
    """Makes the diagram of a position.

    Args:
        board: The position, with the moves before it on its stack.
        opinion: What a model thinks of it; None for the board alone.
        arrows: Most arrows; 0 leaves out the heat map too.
        language: "en" or "ja".
    """
    title = position_title(board, language)
    if opinion is None:
        return Diagram(board, title)
    black_win = opinion.win
    if black_win is not None and board.turn == shogi.WHITE:
        black_win = 1 - black_win
    shown = [
        Arrow(move, probability)
        for move, probability in opinion.candidates[:arrows]
        if probability is not None and probability >= _LEAST
    ]
    return Diagram(board, title, shown, opinion.heat() if arrows else {}, black_win)


def position_title(board: shogi.Board, language: str) -> str:
    """Names the last move and the side to move."""
    side = word("to move", language, side=word(("black", "white")[board.turn], language))
    if not board.move_stack:
        return side
    move = marked_last_move(board)
    return word("after", language, ply=board.move_number - 1, move=move) + "   " + side


def marked_last_move(board: shogi.Board) -> str:
    """Writes the last move on the stack of a board, such as ``▲７六歩(77)``."""
    move = board.pop()
    try:
        return marked_move_text(board, move)
    finally:
        board.push(move)


def course_of(game: AnalyzedGame, title: str) -> Course:
    """Makes the graph of a game; the moves that lose most are marked."""
    return Course(
        title,
        game.black_wins(),
        [move.probability for move in game.moves],
        [move.rank for move in game.moves],
        [move.ply for move in worst_moves(game)],
    )


def worst_moves(game: AnalyzedGame) -> list[AnalyzedMove]:
    """Lists the moves that lose most, at most five, in their order."""
    found = [move for move in game.moves if (move.loss or 0) >= _LOSS]
    found.sort(key=lambda move: -(move.loss or 0))
    return sorted(found[:_MOST_MARKED], key=lambda move: move.ply)
