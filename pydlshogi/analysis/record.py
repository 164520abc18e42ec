"""Games and positions to analyze: record files, SFEN and USI positions."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import shogi

from pydlshogi.errors import UserError
from pydlshogi.files import plain_file
from pydlshogi.kifu.formats import Details, is_binary, records_of
from pydlshogi.kifu.kif_text import handicap_of
from pydlshogi.kifu.legality import board_of, possible_move
from pydlshogi.kifu.parsed_game import DRAW, FOULS, Game, NoMovesError, RecordError
from pydlshogi.player.position import make_board
from pydlshogi.rules import is_legal
from pydlshogi.text import counted
from pydlshogi.usi.protocol import CommandError


class AnalysisError(UserError):
    """A record or a position cannot be analyzed."""


@dataclass(frozen=True)
class GameRecord:
    """A game whose moves have been checked on a board; do not change its start.

    Attributes:
        names: Names of Black and White, empty if unknown.
        end_mark: The end mark of CSA, such as ``%TORYO``; None if there is none.
        winner: ``shogi.BLACK``, ``shogi.WHITE``, or None.
        details: What the record says besides.
    """

    names: tuple[str, str]
    start: shogi.Board
    moves: tuple[shogi.Move, ...]
    end_mark: str | None = None
    winner: int | None = None
    is_drawn: bool = False
    details: Details = field(default_factory=Details)

    def board(self, ply: int | None = None) -> shogi.Board:
        """Sets up the position after ``ply`` moves; None: after all.

        Raises:
            AnalysisError: the game is shorter.
        """
        last = len(self.moves)
        if ply is not None and not 0 <= ply <= last:
            remedy = f"Give a number from 0 to {last}" if last else "Give no number"
            raise AnalysisError(
                f"the game has {counted(last, 'move')}, so there is no position after move {ply}. "
                f"{remedy}."
            )
        board = copy_of(self.start)
        for move in self.moves[:ply]:
            board.push(move)
        return board

    def seconds(self) -> list[float | None]:
        """Lists the time of each move; None where it is unknown."""
        return [self.details.seconds.get(number) for number in range(1, len(self.moves) + 1)]

    @property
    def handicap(self) -> str:
        """The handicap of the start position, such as ``二枚落ち``; empty without one."""
        return handicap_of(self.start.sfen())

    def boards(self) -> Iterator[shogi.Board]:
        """Yields the same board in each position, from the start to the end of the game."""
        board = copy_of(self.start)
        yield board
        for move in self.moves:
            board.push(move)
            yield board


def copy_of(board: shogi.Board) -> shogi.Board:
    """Makes a board with the same position and no moves on its stack."""
    return shogi.Board(board.sfen())


def read_record(
    path: str | os.PathLike[str], number: int = 1, *, needs_moves: bool = True
) -> GameRecord:
    """Reads game ``number``, from 1, of a CSA, KIF or KI2 file.

    Without ``needs_moves``, it may be a position alone. AnalysisError: the file cannot be read, has
    no such game, or a move is impossible.
    """
    name = os.fspath(path)
    if is_binary(name):
        raise AnalysisError(
            f"{name} is a file of positions, not a record. Name a CSA, KIF or KI2 file."
        )
    try:
        data = plain_file(path).read_bytes()
    except OSError as error:
        raise AnalysisError(
            f"record {name} cannot be read ({error.strerror}). Check its path."
        ) from None
    return parse_record(name, data, number, needs_moves=needs_moves)


def parse_record(
    name: str, data: bytes, number: int = 1, *, needs_moves: bool = True
) -> GameRecord:
    """Reads a game from the content of a file, as :func:`read_record`."""
    # No file has more records than bytes; islice refuses huge numbers.
    first = min(max(0, number - 1), len(data))
    record = next(itertools.islice(records_of(name, data), first, None), None)
    if record is None or number < 1:
        raise AnalysisError(f"record {name} has no game number {number}. Choose another number.")
    try:
        try:
            game = record.parse()
        except NoMovesError as error:
            if needs_moves or error.game is None:
                raise
            game = error.game
        return replace(checked_game(game), details=record.details())
    except RecordError as error:
        note = record.note(error.line, error.reason)
        remedy = "Correct that line, or choose" if error.line else "Choose"
        raise AnalysisError(f"record {note}. {remedy} another record.") from None


def checked_game(game: Game) -> GameRecord:
    """Plays the moves of a parsed game.

    If a foul decided the game, the last move may be the foul. It is then left out, and its
    side loses.

    Raises:
        RecordError: another move is impossible.
    """
    start = board_of(game.start, game.turn)
    board = copy_of(start)
    end_mark, winner = game.end_mark, game.winner
    for number, parsed in enumerate(game.moves, 1):
        move = possible_move(board, parsed)
        may_be_foul = 1 < number == len(game.moves) and end_mark in FOULS
        if move and not (may_be_foul and not is_legal(board, move)):
            board.push(move)
        elif may_be_foul:
            end_mark, winner = "%ILLEGAL_MOVE", board.turn ^ 1
        else:
            raise RecordError(parsed.line, f"move {number} cannot be played")
    black, white = game.names
    is_drawn = winner is None and game.result == DRAW
    moves = tuple(board.move_stack)
    return GameRecord((black, white), start, moves, end_mark, winner, is_drawn)


def read_position(text: str) -> GameRecord:
    """Reads a position in the notation of USI, as a game that ends with it.

    It is ``startpos`` or a SFEN, perhaps with ``moves …``, and may begin with ``position`` or
    ``sfen``. AnalysisError: the text is no position.
    """
    words = text.split()
    start, _, moves = " ".join(words).partition(" moves")
    start = start.removeprefix("position ").removeprefix("sfen ")
    try:
        board = make_board(None if start == "startpos" else start, moves.split())
    except CommandError as error:
        reason = str(error).removeprefix("position: ")
        raise AnalysisError(
            f"{reason}. Name a record file, or give a position such as "
            '"startpos moves 7g7f 3c3d" or an SFEN in quotes.'
        ) from None
    played = tuple(board.move_stack)
    for _ in played:
        board.pop()
    return GameRecord(("", ""), copy_of(board), played)
