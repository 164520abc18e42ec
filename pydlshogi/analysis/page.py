"""Pages of games: of an analyzed game, or of a record alone."""

from __future__ import annotations

from collections.abc import Sequence

import shogi

from pydlshogi.analysis.game import AnalyzedGame, Summary
from pydlshogi.analysis.opinion import Opinion
from pydlshogi.analysis.record import GameRecord
from pydlshogi.drawing.notation import SIDES, line_text, marked_move_text
from pydlshogi.drawing.page import GamePage, PageCandidate, PageMove, PagePosition
from pydlshogi.drawing.words import end_reason, word

#: Moves of the model that a page shows for each position.
_SHOWN = 5


def page_of_game(game: AnalyzedGame, notes: Sequence[str], language: str) -> GamePage:
    """Makes the page of an analyzed game.

    Args:
        game: The game.
        notes: Lines to show first; the summaries of both sides follow.
        language: "en" or "ja".
    """
    record = game.record
    positions = [
        _position(board, opinion, black_win)
        for board, opinion, black_win in zip(record.boards(), game.opinions, game.black_wins())
    ]
    moves = [
        PageMove(move.move.usi(), move.text, move.rank, move.probability, move.before, move.after)
        for move in game.moves
    ]
    summaries = [summary_text(game.summary(color), color, language) for color in shogi.COLORS]
    lines = [*notes, *filter(None, summaries)]
    return GamePage(title_of(record), lines, positions, moves, end_text(record, language))


def page_of_record(
    record: GameRecord,
    seconds: Sequence[float],
    black_wins: Sequence[float | None],
    notes: Sequence[str],
    language: str,
) -> GamePage:
    """Makes the page of a game that nobody has analyzed.

    Args:
        record: The game.
        seconds: The time of each move; it may be shorter than the game.
        black_wins: Probability that Black wins in each position, from the start; None where it
            is unknown. It may be shorter than the game.
        notes: Lines to show.
        language: "en" or "ja".
    """
    unknown = [None] * (len(record.moves) + 1)
    wins = [*black_wins, *unknown]
    positions = [PagePosition(board.sfen(), win) for board, win in zip(record.boards(), wins)]
    moves = [
        PageMove(
            move.usi(),
            marked_move_text(board, move),
            before=1 - win if win is not None and board.turn == shogi.WHITE else win,
            seconds=time,
        )
        for board, move, win, time in zip(record.boards(), record.moves, wins, [*seconds, *unknown])
    ]
    return GamePage(title_of(record), notes, positions, moves, end_text(record, language))


def _position(board: shogi.Board, opinion: Opinion, black_win: float | None) -> PagePosition:
    candidates = [
        PageCandidate(row.move.usi(), marked_move_text(board, row.move), row.probability)
        for row in opinion.candidates[:_SHOWN]
    ]
    return PagePosition(board.sfen(), black_win, candidates, line_text(board, opinion.line))


def title_of(record: GameRecord) -> str:
    """Names the players."""
    return " - ".join(f"{mark} {name or '?'}" for mark, name in zip(SIDES, record.names))


def summary_text(summary: Summary, color: int, language: str) -> str:
    """Says how well the moves of a side fit the model; empty if nothing is known."""
    side = word(("black", "white")[color], language)
    parts = []
    if summary.moves:
        share = summary.first / summary.moves
        parts.append(
            word(
                "agreement", language,
                side=side, count=summary.first, total=summary.moves, share=share,
            )
        )  # fmt: skip
    if summary.loss is not None:
        parts.append(word("loss", language, loss=summary.loss))
    return word("and", language).join(parts)


def end_text(record: GameRecord, language: str) -> str:
    """Says who won, and how the game ended."""
    reason = end_reason(record.end_mark, language)
    in_brackets = word("reason", language, reason=reason) if reason else ""
    if record.is_drawn:
        return word("draw", language) + in_brackets
    if record.winner is None:
        return reason
    side = word(("black", "white")[record.winner], language)
    return word("wins", language, side=side) + in_brackets
