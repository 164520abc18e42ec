"""Pictures and pages: of a position, of an analyzed game, or of a record alone."""

from __future__ import annotations

from collections.abc import Sequence

import shogi

from pydlshogi.analysis.analyzed import BAD, DOUBTFUL, AnalyzedGame, AnalyzedMove, Summary
from pydlshogi.analysis.kif import record_lines
from pydlshogi.analysis.opinion import Opinion, seen_by_black
from pydlshogi.analysis.record import GameRecord
from pydlshogi.drawing.board import Arrow, Diagram
from pydlshogi.drawing.graph import Course
from pydlshogi.drawing.notation import SIDES, line_text, marked_move_text
from pydlshogi.drawing.page import GamePage, PageCandidate, PageMove, PagePosition
from pydlshogi.drawing.words import end_reason, side_words, word
from pydlshogi.kifu.kif_text import handicap_of
from pydlshogi.player.position import start_and_moves

#: Less probable moves get no arrow.
_LEAST = 0.005

#: Most marked moves of a graph.
_MOST_MARKED = 5


def diagram_of(board: shogi.Board, opinion: Opinion | None, arrows: int, language: str) -> Diagram:
    """Makes the diagram of a position, with the moves before it on its stack.

    Without an opinion it is the board alone; without ``arrows`` there is no heat map either.
    """
    start, _ = start_and_moves(board)
    handicap = bool(start and handicap_of(start))
    title = position_title(board, language, handicap)
    if opinion is None:
        return Diagram(board, title, handicap=handicap)
    black_win = seen_by_black(opinion.win, board.turn)
    shown = [
        Arrow(row.move, row.probability)
        for row in opinion.candidates[:arrows]
        if row.probability is not None and row.probability >= _LEAST
    ]
    heat = opinion.heat() if arrows else {}
    return Diagram(board, title, shown, heat, black_win, handicap)


def position_title(board: shogi.Board, language: str, handicap: bool) -> str:
    """Names the last move and the side to move."""
    side = word("to move", language, side=side_words(handicap, language)[board.turn])
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
        any(opinion.nodes for opinion in game.opinions),
        bool(game.record.handicap),
    )


def worst_moves(game: AnalyzedGame) -> list[AnalyzedMove]:
    """Lists the moves that lose most, at most five, in their order."""
    found = [move for move in game.moves if move.mark]
    found.sort(key=lambda move: -(move.loss or 0))
    return sorted(found[:_MOST_MARKED], key=lambda move: move.ply)


#: Moves of the model that a page shows for each position, and the most moves of their lines.
_SHOWN, _LINE = 5, 12


def page_of_game(game: AnalyzedGame, model: str, seconds: float, language: str) -> GamePage:
    """Makes the page of a game that a model has analyzed, with so many seconds a position."""
    record = game.record
    lines = [word("model", language, name=model)]
    if seconds:
        lines.append(word("searched", language, seconds=seconds))
    positions = [
        _position(board, opinion, black_win)
        for board, opinion, black_win in zip(record.boards(), game.opinions, game.black_wins())
    ]
    moves = [
        PageMove(
            move.move.usi(), move.text, move.rank, move.probability, move.before, move.after,
            seconds, move.mark,
        )
        for move, seconds in zip(game.moves, record.seconds())
    ]  # fmt: skip
    summaries = [
        summary_text(game.summary(color), color, language, record.handicap)
        for color in shogi.COLORS
    ]
    lines += filter(None, summaries)
    if any(win is not None for win in game.black_wins()):
        lines.append(word("marks", language, doubtful=DOUBTFUL, bad=BAD))
        lines += [word("handicap", language)] * bool(record.handicap)
    searched = any(opinion.nodes for opinion in game.opinions)
    return _page(record, lines, positions, moves, language, searched)


def page_of_record(
    record: GameRecord,
    seconds: Sequence[float | None],
    black_wins: Sequence[float | None],
    notes: Sequence[str],
    language: str,
) -> GamePage:
    """Makes the page of a game that nobody has analyzed.

    ``seconds`` of the moves and ``black_wins``, Black's chance in each position (None: unknown),
    may be shorter than the game.
    """
    unknown = [None] * (len(record.moves) + 1)
    wins = [*black_wins, *unknown]
    positions = [PagePosition(board.sfen(), win) for board, win in zip(record.boards(), wins)]
    moves = [
        PageMove(
            move.usi(),
            marked_move_text(board, move),
            before=seen_by_black(win, board.turn),
            seconds=time,
        )
        for board, move, win, time in zip(record.boards(), record.moves, wins, [*seconds, *unknown])
    ]
    return _page(record, notes, positions, moves, language)


def _page(
    record: GameRecord,
    notes: Sequence[str],
    positions: Sequence[PagePosition],
    moves: Sequence[PageMove],
    language: str,
    searched: bool = False,
) -> GamePage:
    details, end = record.details, end_text(record, language)
    facts = (details.event, details.date, record.handicap, end)
    return GamePage(
        title=title_of(record),
        about=word("between", language).join(filter(None, facts)),
        notes=notes,
        positions=positions,
        moves=moves,
        end=end,
        sides=side_words(record.handicap, language),
        kif="".join(f"{line}\n" for line in record_lines(record)),
        searched=searched,
    )


def _position(board: shogi.Board, opinion: Opinion, black_win: float | None) -> PagePosition:
    candidates = [
        PageCandidate(
            row.move.usi(), marked_move_text(board, row.move), row.probability, row.value,
            row.visits, " ".join(move.usi() for move in row.line[:_LINE]),
            line_text(board, list(row.line[:_LINE])),
        )
        for row in opinion.candidates[:_SHOWN]
        if row.visits or row.value is not None or not opinion.nodes
    ]  # fmt: skip
    return PagePosition(board.sfen(), black_win, candidates)


def title_of(record: GameRecord) -> str:
    """Names the players."""
    return " - ".join(f"{mark} {name or '?'}" for mark, name in zip(SIDES, record.names))


def summary_text(summary: Summary, color: int, language: str, handicap: str = "") -> str:
    """Says how well the moves of a side fit the model; empty if nothing is known."""
    side = side_words(handicap, language)[color]
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
    side = side_words(record.handicap, language)[record.winner]
    return word("wins", language, side=side) + in_brackets
