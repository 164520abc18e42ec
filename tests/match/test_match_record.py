"""The record of one game: its lines, the whole seconds of its moves, its evaluations."""

import pytest
import shogi

from pydlshogi.kifu.csa import parse_game
from pydlshogi.match.record import PlayedGame, format_record
from pydlshogi.match.referee import Verdict
from pydlshogi.positions import NO_EVALUATION

MOVES = ["+7776FU", "-3334FU", "+2726FU"]


@pytest.mark.parametrize(
    ("seconds", "last"),
    [([0.0, 0.99, 12.5, 3.01], "T3"), ([0.0, 0.99, 12.5], "T0")],
    ids=["ended by an answer", "ended by a move"],
)
def test_times_are_whole_seconds_and_evaluations_follow_their_moves(seconds, last):
    evaluations = [None, -35, 120, None][: len(seconds)]
    game = PlayedGame(MOVES, seconds, evaluations, Verdict(shogi.BLACK, "%TORYO", "b resigned"))
    record = format_record(["a", "b"], "a_b 1", ["two\nlines\x1b"], game)
    head, moves = record.decode("utf-8").split("\nPI\n+\n")
    assert moves.splitlines() == [
        *("+7776FU", "T0"),
        *("-3334FU", "T0", "'** -35"),
        *("+2726FU", "T12", "'** 120"),
        *("%TORYO", last, "'b resigned"),
    ]
    lines = head.splitlines()
    assert lines[:4] == ["V2.2", "N+a", "N-b", "$EVENT:a_b 1"]
    assert lines[4].startswith("$END_TIME:") and lines[5:] == ["'two lines "]
    read = parse_game(record)
    assert [move.evaluation for move in read.moves] == [NO_EVALUATION, 35, 120]
    assert (read.winner, read.end_mark) == (shogi.BLACK, "%TORYO")
