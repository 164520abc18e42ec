"""The table of a match."""

import shogi

from pydlshogi.match.record import Outcome
from pydlshogi.match.series import Row, markdown, tsv


def test_a_match_without_a_loss_has_no_elo_and_every_console_prints_it():
    wins = {1: Outcome(shogi.BLACK, False, 80), 2: Outcome(shogi.WHITE, False, 80)}
    table = markdown([Row("policy", "random", wins)])
    assert "| 2 | 2 | 0 | 0 | 100.0 % | - | at least " in table
    # A Japanese Windows console takes no other letters.
    table.encode("cp932")


def test_a_match_without_a_game_has_no_figures():
    rows = [Row("policy", "random", {})]
    head, line = (text.split("\t") for text in tsv(rows).splitlines())
    cells = dict(zip(head, line))
    assert (cells["games"], cells["faults"]) == ("0", "0")
    for name in ("score", "elo", "elo_low", "elo_high", "mean_plies"):
        assert cells[name] == ""
    assert "| 0 | 0 | 0 | 0 |  |  | unknown | 0 : 0 |  |" in markdown(rows)
