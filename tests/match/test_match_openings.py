"""Openings: legal, repeatable, independent of one another, never already over."""

import zipfile
from pathlib import Path

import pytest
import shogi

from pydlshogi.kifu.csa import parse_game
from pydlshogi.kifu.sources import KifuError
from pydlshogi.match import openings as module
from pydlshogi.match.openings import OpeningError, draw_openings, random_opening
from pydlshogi.rules import has_legal_move, is_legal, legal_moves

GAMES = Path(__file__).resolve().parents[2] / "kifu"
TEST_LIST = str(GAMES / "kifulist_test.txt")


@pytest.mark.parametrize("plies", [0, 1, 4, 24])
def test_openings_are_legal_and_not_over(plies):
    for pair in range(20):
        board = shogi.Board()
        for usi in random_opening(7, pair, plies):
            assert is_legal(board, shogi.Move.from_usi(usi))
            board.push_usi(usi)
        assert board.move_number == plies + 1
        assert has_legal_move(board)


def test_openings_depend_on_seed_and_pair_alone():
    openings = {(seed, pair): random_opening(seed, pair, 6) for seed in (0, 1) for pair in range(9)}
    assert len(set(map(tuple, openings.values()))) == 18
    assert random_opening(1, 8, 6) == openings[1, 8]


def test_an_opening_is_the_same_everywhere():
    # Whatever the version of Python, cshogi or the system: else no match could be resumed there.
    assert random_opening(0, 0, 4) == ["3i4h", "4a5b", "8g8f", "9c9d"]


def test_openings_that_mate_are_passed_over(monkeypatch):
    def no_moves_after_a_gold(board):
        """Calls every position over in which Black has moved a gold first."""
        firsts = [move.usi() for move in list(board.move_stack)[:1]]
        return [] if firsts in (["4i5h"], ["6i7h"]) else legal_moves(board)

    monkeypatch.setattr(module, "legal_moves", no_moves_after_a_gold)
    firsts = {random_opening(0, pair, 2)[0] for pair in range(300)}
    assert len(firsts) == 28
    assert not firsts & {"4i5h", "6i7h"}


def test_random_openings_are_those_of_their_pairs():
    openings = draw_openings(3, 4, 7, None)
    assert [opening.moves for opening in openings] == [random_opening(7, n, 4) for n in range(3)]
    assert openings[0].origin == "4 random moves, seed 7"


def test_openings_of_games_are_their_first_moves():
    cshogi = pytest.importorskip("cshogi")
    pytest.importorskip("cshogi.CSA")
    openings = draw_openings(20, 24, 0, TEST_LIST)
    assert len({tuple(opening.moves) for opening in openings}) == 20
    for moves, origin in openings:
        name = origin.removeprefix("24 moves of ").removesuffix(", game 1")
        (path,) = GAMES.rglob(Path(name).name)
        (theirs,) = cshogi.CSA.Parser.parse_file(str(path))
        assert moves == [cshogi.move_to_usi(move) for move in theirs.moves[:24]]


def test_openings_of_games_depend_on_the_seed_and_not_on_their_number():
    few, many = (draw_openings(number, 10, 3, TEST_LIST) for number in (2, 9))
    assert many[:2] == few
    assert draw_openings(9, 10, 4, TEST_LIST) != many


def test_a_game_that_repeats_a_position_gives_no_opening(tmp_path):
    cycle = ["+2818HI", "-8292HI", "+1828HI", "-9282HI"]
    moves = "\n".join([*cycle * 3, "+7776FU", "-3334FU"])
    (tmp_path / "a.csa").write_text(f"PI\n+\n{moves}\n%TORYO\n")
    (tmp_path / "list.txt").write_text("a.csa\n")
    kifu_list = str(tmp_path / "list.txt")
    assert len(draw_openings(1, 11, 0, kifu_list)[0].moves) == 11  # the third occurrence is no end
    for plies in (12, 13):
        with pytest.raises(OpeningError, match="0 different openings"):
            draw_openings(1, plies, 0, kifu_list)


def test_a_game_with_an_impossible_move_gives_no_opening(tmp_path):
    moves = ["+7776FU", "-3334FU", "+2726FU", "-8182HI", "+2625FU", "-8384FU"]
    (tmp_path / "a.csa").write_text("PI\n+\n" + "\n".join(moves) + "\n%ILLEGAL_MOVE\n")
    (tmp_path / "list.txt").write_text("a.csa\n")
    assert len(draw_openings(1, 3, 0, str(tmp_path / "list.txt"))[0].moves) == 3
    with pytest.raises(OpeningError, match="0 different openings"):
        draw_openings(1, 4, 0, str(tmp_path / "list.txt"))


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "list.txt").write_text("missing.csa\nother.csa\n")
    with pytest.raises(
        OpeningError, match=r"2 files cannot be read; the first: \w+\.csa, .*no such"
    ):
        draw_openings(1, 4, 0, str(tmp_path / "list.txt"))


def test_only_different_openings_of_even_legal_games_are_used(tmp_path):
    head, moves = "PI\n+\n", ["+7776FU", "-3334FU", "+2726FU", "-8384FU"]

    def game(name, text):
        (tmp_path / name).write_text(text + "%TORYO\n")

    game("good.csa", head + "\n".join([*moves, "+2625FU"]) + "\n")
    game("same.csa", head + "\n".join([*moves, "+6978KI"]) + "\n")
    game("short.csa", head + "\n".join([*moves[:3], "-4132KI"]) + "\n")
    game("impossible.csa", head + "\n".join([*moves[:3], "-8385FU", "+2625FU"]) + "\n")
    game(
        "other.csa",
        head + "\n".join(["+7776FU", "-3334FU", "+5958OU", "-2288UM", "+7988GI"]) + "\n",
    )
    # White's king stays in check.
    game(
        "illegal.csa",
        head + "\n".join(["+7776FU", "-5354FU", "+8833UM", "-8384FU", "+2726FU"]) + "\n",
    )
    handicap = ["-3334FU", "+7776FU", "-8384FU", "+2726FU", "-8485FU"]
    game("handicap.csa", "PI22KA\n-\n" + "\n".join(handicap) + "\n")
    game("damaged.csa", "P1 nothing\n")
    (tmp_path / "positions.hcpe").write_bytes(bytes(38))
    names = sorted(path.name for path in tmp_path.iterdir())
    (tmp_path / "list.txt").write_text("\n".join([*names, "missing.csa"]))
    kifu_list = str(tmp_path / "list.txt")

    assert {tuple(opening.moves) for opening in draw_openings(2, 4, 0, kifu_list)} == {
        ("7g7f", "3c3d", "2g2f", "8c8d"),
        ("7g7f", "3c3d", "5i5h", "2b8h+"),
    }
    message = r"list\.txt have 2 different openings of 4 moves, but the match needs 3"
    with pytest.raises(OpeningError, match=message):
        draw_openings(3, 4, 0, kifu_list)


def test_openings_come_from_archives_and_files_of_many_games_too(tmp_path):
    paths = sorted(GAMES.rglob("*.csa"))[:4]
    with zipfile.ZipFile(tmp_path / "games.zip", "w") as archive:
        archive.write(paths[0], "first.csa")
    (tmp_path / "many.csa").write_bytes(b"/\n".join(path.read_bytes() for path in paths[1:]))
    (tmp_path / "list.txt").write_text("games.zip\nmany.csa\n")
    openings = draw_openings(4, 40, 0, str(tmp_path / "list.txt"))
    assert len(openings) == 4
    assert {opening.origin.split(" of ")[1] for opening in openings} == {
        "games.zip/first.csa, game 1",
        *(f"many.csa, game {number}" for number in (1, 2, 3)),
    }
    assert all(len(parse_game(path.read_bytes()).moves) > 40 for path in paths)


def test_a_missing_list_of_openings_is_named():
    with pytest.raises(KifuError, match=r"kifu list none\.txt cannot be read"):
        draw_openings(1, 24, 0, "none.txt")
