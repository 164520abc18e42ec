"""Analyzed games as KIF with comments.

GUIs show lines that begin with ``*`` as the comment of the move above them. Two kinds of
lines also give their graphs the value of the position after the move, in centipawns for
Black: ``*#評価値=`` is read by ShogiHome, ``**解析 0 … 評価値`` by ShogiGUI.

Sources: sunfish-shogi/shogihome (its record module); records written by ShogiGUI.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import shogi

from pydlshogi.analysis.analyzed import AnalyzedGame, AnalyzedMove
from pydlshogi.analysis.opinion import Candidate, Opinion
from pydlshogi.analysis.record import AnalysisError, GameRecord
from pydlshogi.drawing.notation import PIECES, line_text, marked_move_text, move_text
from pydlshogi.drawing.words import side_words
from pydlshogi.files import not_written, write_beside
from pydlshogi.kifu.kif_text import handicap_of
from pydlshogi.player.strategy import score
from pydlshogi.text import one_line

#: Suffix of KIF in UTF-8; ``.kif`` stands for Shift_JIS, as GUIs expect.
_UTF_8_SUFFIX = ".kifu"

# Characters of Japanese text that Windows' Shift_JIS lacks, and those that it has in their place.
_IN_CP932 = str.maketrans("〜−—‖¢£¬", "～－―∥￠￡￢")

#: KIF's words for the ends of a game, by CSA's end marks.
_ENDS = {
    "%TORYO": "投了",
    "%TSUMI": "詰み",
    "%TIME_UP": "切れ負け",
    "%ILLEGAL_MOVE": "反則負け",
    "%+ILLEGAL_ACTION": "反則",
    "%-ILLEGAL_ACTION": "反則",
    "%KACHI": "入玉勝ち",
    "%SENNICHITE": "千日手",
    "%JISHOGI": "持将棋",
    "%MAX_MOVES": "持将棋",
    "%HIKIWAKE": "持将棋",
    "%FUZUMI": "不詰",
}
_BREAK = "中断"

_NUMBERS = "〇一二三四五六七八九"
_SHOWN = 3


def write_kif(game: AnalyzedGame, output: str | os.PathLike[str], engine: str) -> None:
    """Writes an analyzed game as KIF, atomically: ``.kifu`` in UTF-8, any other in Shift_JIS.

    Raises:
        AnalysisError: the file cannot be written.
    """
    text = "".join(f"{line}\r\n" for line in kif_lines(game, engine))
    if str(output).lower().endswith(_UTF_8_SUFFIX):
        data = text.encode("utf-8", "replace")
    else:
        data = text.translate(_IN_CP932).encode("cp932", "replace")
    try:
        Path(output).parent.mkdir(parents=True, exist_ok=True)
        with write_beside(output) as file:
            file.write(data)
    except OSError as error:
        raise AnalysisError(not_written(output, error, "Choose another file.")) from None


def kif_lines(game: AnalyzedGame, engine: str) -> Iterator[str]:
    """Yields the lines of an analyzed game."""
    board = game.record.board(0)
    comments = [[f"**Engines 0 {one_line(engine)}", f"*pydlshogi（{one_line(engine)}）による解析"]]
    comments[0] += [*_summary_lines(game), *_value_lines(board, game.opinions[0], engine)]
    for move, opinion, after in zip(game.moves, game.opinions, game.opinions[1:]):
        lines = list(_move_lines(board, move, opinion, game.record))
        board.push(move.move)
        comments.append([*lines, *_value_lines(board, after, engine)])
    yield from record_lines(game.record, comments)


def record_lines(record: GameRecord, comments: Sequence[Iterable[str]] = ()) -> Iterator[str]:
    """Yields the lines of a game, with comments on the start and on each move."""
    details, sides = record.details, side_words(record.handicap, "ja")
    for title, text in (("開始日時", details.date), ("棋戦", details.event)):
        if text:
            yield f"{title}：{one_line(text)}"
    yield from start_lines(record.start)
    for title, name in zip(sides, record.names):
        yield f"{title}：{one_line(name)}"
    yield "手数----指手---------消費時間--"
    yield from next(iter(comments), ())
    board, totals = record.board(0), [0, 0]
    for number, (move, seconds) in enumerate(zip(record.moves, record.seconds()), 1):
        line = f"{number:4} {move_text(board, move)}"
        if seconds is not None:
            totals[board.turn] += int(seconds)
            line += f"   {_times(int(seconds), totals[board.turn])}"
        yield line
        board.push(move)
        yield from comments[number] if comments else ()
    yield from end_lines(record)


def _times(used: int, total: int) -> str:
    minutes, seconds = divmod(total, 60)
    return f"({used // 60:2}:{used % 60:02}/{minutes // 60:02}:{minutes % 60:02}:{seconds:02})"


def start_lines(start: shogi.Board) -> Iterator[str]:
    """Describes the position before the first move."""
    is_even = start.sfen().split()[:3] == shogi.Board().sfen().split()[:3]
    handicap = "平手" if is_even else handicap_of(start.sfen())
    if handicap:
        yield f"手合割：{handicap}"
        return
    yield f"後手の持駒：{_hand(start, shogi.WHITE)}"
    yield "  ９ ８ ７ ６ ５ ４ ３ ２ １"
    yield "+---------------------------+"
    for row in range(9):
        cells = (start.piece_at(9 * row + column) for column in range(9))
        yield "|" + "".join(map(_cell, cells)) + "|" + _NUMBERS[row + 1]
    yield "+---------------------------+"
    yield f"先手の持駒：{_hand(start, shogi.BLACK)}"
    if start.turn == shogi.WHITE:
        yield "後手番"


def _cell(piece: shogi.Piece | None) -> str:
    if piece is None:
        return " ・"
    return ("v" if piece.color == shogi.WHITE else " ") + PIECES[piece.piece_type]


def _hand(board: shogi.Board, color: int) -> str:
    """Writes the pieces in hand, the largest first."""
    held = board.pieces_in_hand[color]
    pieces = [
        PIECES[kind] + (_count(held[kind]) if held[kind] > 1 else "")
        for kind in range(shogi.ROOK, 0, -1)
        if held[kind]
    ]
    return "　".join(pieces) or "なし"


def _count(number: int) -> str:
    return ("十" if number >= 10 else "") + (_NUMBERS[number % 10] if number % 10 else "")


def _summary_lines(game: AnalyzedGame) -> Iterator[str]:
    """Says how often each side played the model's choice."""
    for color, name in enumerate(side_words(game.record.handicap, "ja")):
        summary = game.summary(color)
        if summary.moves:
            share = 100 * summary.first / summary.moves
            yield f"*{name}：第1候補との一致 {summary.first}/{summary.moves}（{share:.0f}%）"
        if summary.loss is not None:
            yield f"*{name}：勝率の低下 1手平均{100 * summary.loss:.1f}%"


def _move_lines(
    board: shogi.Board, move: AnalyzedMove, opinion: Opinion, record: GameRecord
) -> Iterator[str]:
    """Comments on a move; ``board`` is the position before it."""
    if move.rank is not None and move.probability is not None:
        yield f"*第{move.rank}候補 {100 * move.probability:.1f}%"
    shown = [
        f"{marked_move_text(board, row.move)} {100 * row.probability:.1f}%{_found(row)}"
        for row in opinion.candidates[:_SHOWN]
        if row.probability is not None and (row.value is not None or not opinion.nodes)
    ]
    if shown:
        yield "*候補手：" + "、".join(shown)
    if move.before is not None and move.after is not None:
        side = side_words(record.handicap, "ja")[move.color]
        change = 100 * (move.after - move.before)
        before, after = 100 * move.before, 100 * move.after
        yield f"*{side}の勝率 {before:.1f}% → {after:.1f}%（{change:+.1f}）"


def _found(row: Candidate) -> str:
    """Says what a search found of a candidate."""
    return "" if row.value is None else f"（勝率{100 * row.value:.1f}%、{row.visits}回）"


def _value_lines(board: shogi.Board, opinion: Opinion, engine: str) -> Iterator[str]:
    """Gives the value of a position to the graphs of the GUIs."""
    if opinion.win is None:
        return
    value = score(opinion.win if board.turn == shogi.BLACK else 1 - opinion.win)
    line = opinion.line or [row.move for row in opinion.candidates[:1]]
    text = line_text(board, line)
    depth = f"深さ {len(line)} ノード数 {max(1, opinion.nodes)}"
    yield f"**解析 0 {depth} 評価値 {value}" + (f" 読み筋 {text}" if text else "")
    yield f"*#評価値={value}"
    if text:
        yield f"*#読み筋={text.replace(' ', '')}"
    yield f"*#エンジン={one_line(engine)}"


def end_lines(record: GameRecord) -> Iterator[str]:
    """Says how the game ended."""
    number = len(record.moves)
    end = _ENDS.get(record.end_mark or "", _BREAK)
    turn = (record.start.turn + number) % 2
    if end == "反則":  # the mark names the side that broke a rule
        loser = shogi.BLACK if record.end_mark == "%+ILLEGAL_ACTION" else shogi.WHITE
        end = "反則負け" if loser == turn else "反則勝ち"
    elif record.end_mark == "%KACHI" and record.winner == 1 - turn:
        end = "反則負け"  # the declaration was refused
    # The result of a game without an end mark is known from a summary, which gives no reason.
    if record.end_mark or not (record.is_drawn or record.winner is not None):
        yield f"{number + 1:4} {end}   ( 0:00/00:00:00)"
    if record.winner is not None:
        winner = side_words(record.handicap, "ja")[record.winner]
        yield f"まで{number}手で{winner}の勝ち"
    elif end in ("千日手", "持将棋"):
        yield f"まで{number}手で{end}"
    elif record.is_drawn:
        yield f"まで{number}手で引き分け"
