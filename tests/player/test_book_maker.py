"""Opening books from games."""

import collections
from pathlib import Path

import cshogi
import pytest
from cshogi import CSA

from pydlshogi.commands.make_book import main
from pydlshogi.player.book import book_key, read_book

KIFU = Path(__file__).resolve().parents[2] / "kifu"
PLIES = 12


def counted(folder):
    """Counts positions, moves and answers with cshogi, from the records themselves."""
    moves = collections.defaultdict(collections.Counter)
    answers = collections.defaultdict(collections.Counter)
    for path in folder.glob("*.csa"):
        board = cshogi.Board()
        game = list(CSA.Parser.parse_file(str(path))[0].moves)
        for move, answer in zip(game[:PLIES], [*game[1:PLIES], None]):
            key, word = book_key(board.sfen()), cshogi.move_to_usi(move)
            moves[key][word] += 1
            answers[key, word][cshogi.move_to_usi(answer) if answer else ""] += 1
            board.push(move)
    return moves, answers


@pytest.mark.parametrize("least", [1, 3])
def test_a_book_counts_the_moves_of_the_games(tmp_path, capsys, least):
    path = tmp_path / "a book.db"
    arguments = ["--plies", str(PLIES), "--least", str(least)]
    assert main([str(KIFU / "kifulist_test.txt"), str(path), *arguments]) == 0
    book = read_book(path)
    expected, answers = counted(KIFU / "test")
    kept = {
        key: {move: count for move, count in moves.items() if count >= least}
        for key, moves in expected.items()
    }
    found = {key: {move.move: move.times for move in moves} for key, moves in book.items()}
    assert found == {key: moves for key, moves in kept.items() if moves}
    for key, moves in book.items():
        assert [move.times for move in moves] == sorted((m.times for m in moves), reverse=True)
        for move in moves:
            known = {a: n for a, n in answers[key, move.move].items() if a}
            assert (known[move.answer] == max(known.values())) if known else move.answer == ""
    assert f"{len(book)} positions" in capsys.readouterr().out


def test_a_missing_list_is_named_in_one_sentence(tmp_path, capsys):
    assert main([str(tmp_path / "none.txt"), str(tmp_path / "book.db")]) == 1
    error = capsys.readouterr().err
    assert "none.txt" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "book.db").exists()
