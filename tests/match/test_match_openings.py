"""Openings: legal, repeatable, independent of one another, never already over."""

import pytest

cshogi = pytest.importorskip("cshogi")

from pydlshogi.match.openings import random_opening  # noqa: E402


@pytest.mark.parametrize("plies", [0, 1, 4, 24])
def test_openings_are_legal_and_not_over(plies):
    for pair in range(20):
        board = cshogi.Board()
        for usi in random_opening(7, pair, plies):
            assert board.is_legal(board.move_from_usi(usi))
            board.push_usi(usi)
        assert board.move_number == plies + 1
        assert not board.is_game_over()


def test_openings_depend_on_seed_and_pair_alone():
    openings = {(seed, pair): random_opening(seed, pair, 6) for seed in (0, 1) for pair in range(9)}
    assert len(set(map(tuple, openings.values()))) == 18
    assert random_opening(1, 8, 6) == openings[1, 8]


def test_an_opening_is_the_same_everywhere():
    # Whatever the version of Python, cshogi or the system: else no match could be resumed there.
    assert random_opening(0, 0, 4) == ["3i4h", "4a5b", "8g8f", "9c9d"]


def test_openings_that_mate_are_passed_over(monkeypatch):
    class Mated(cshogi.Board):
        """Calls every position over in which Black has moved a gold first."""

        def is_game_over(self):
            firsts = [cshogi.move_to_usi(move) for move in self.history[:1]]
            return firsts in (["4i5h"], ["6i7h"]) or super().is_game_over()

    monkeypatch.setattr(cshogi, "Board", Mated)
    firsts = {random_opening(0, pair, 2)[0] for pair in range(300)}
    assert len(firsts) == 28
    assert not firsts & {"4i5h", "6i7h"}
