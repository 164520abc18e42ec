"""Opening books from games."""

import collections
from pathlib import Path

import cshogi
import numpy
import pytest
from cshogi import CSA

from pydlshogi.commands import convert_positions
from pydlshogi.commands.make_opening_book import main
from pydlshogi.player.opening_book import book_key, make_opening_book, read_book
from pydlshogi.read_kifu import read_kifu

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


GAME = "V2.2\n{}\n{}7776FU\n{}3334FU\n%TORYO\n"
EVEN = GAME.format("PI\n+", "+", "-")
HANDICAP = "V2.2\nPI82HI22KA\n-\n-3334FU\n+7776FU\n%TORYO\n"


def games(folder, *texts):
    """Writes games and their list; returns the list."""
    names = [f"{number}.csa" for number in range(len(texts))]
    for name, text in zip(names, texts):
        (folder / name).write_text(text)
    (folder / "list.txt").write_text("\n".join(names))
    return folder / "list.txt"


def test_handicap_games_are_left_out(tmp_path):
    alone, both = tmp_path / "even.db", tmp_path / "both.db"
    assert main([str(games(tmp_path, EVEN)), str(alone), "--least", "1"]) == 0
    kifulist = games(tmp_path, HANDICAP, EVEN, HANDICAP)
    assert main([str(kifulist), str(both), "--least", "1"]) == 0
    assert len(read_book(alone)) == 2
    assert both.read_bytes() == alone.read_bytes()


def test_a_game_ends_before_an_illegal_move(tmp_path):
    alone, both = tmp_path / "even.db", tmp_path / "both.db"
    legal = "V2.2\nPI\n+\n+7776FU\n-5354FU\n+8833UM\n"
    # The last move but one leaves the king in check.
    illegal = legal + "-8384FU\n+2726FU\n%TORYO\n"
    assert main([str(games(tmp_path, legal)), str(alone), "--least", "1"]) == 0
    assert main([str(games(tmp_path, illegal)), str(both), "--least", "1"]) == 0
    assert len(read_book(alone)) == 3
    assert both.read_bytes() == alone.read_bytes()


def test_a_game_without_its_first_position_is_left_out(tmp_path):
    even, handicap = (read_kifu(games(tmp_path, text)).array for text in (EVEN, HANDICAP))
    positions = numpy.concatenate([even, handicap[1:], even])
    book = make_opening_book(positions, plies=4, least=1)
    assert set(book) == set(make_opening_book(even, plies=4, least=1))


def psv(folder, text):
    """Reads the positions of a game as PSV has them: without the moves before."""
    kifulist = games(folder, text)
    assert convert_positions.main([str(kifulist), str(folder / "a.psv")]) == 0
    kifulist.write_text("a.psv")
    return read_kifu(kifulist).array


def test_positions_of_several_games_are_not_taken_for_one(tmp_path):
    first = psv(tmp_path, EVEN)
    second = psv(tmp_path, "V2.2\nPI\n+\n+2726FU\n-8384FU\n%TORYO\n")
    handicap = psv(tmp_path, "V2.2\nPI82HI\n-\n-3334FU\n+7776FU\n-8384FU\n%TORYO\n")
    mixed = numpy.concatenate([first[:1], second[1:2], handicap[2:3]])
    book = make_opening_book(mixed, plies=4, least=1)
    assert [(move.move, move.answer) for moves in book.values() for move in moves] == [("7g7f", "")]
    # A gap, too: only the moves of the whole game are known to follow each other.
    long = psv(tmp_path, "V2.2\nPI\n+\n+7776FU\n-3334FU\n+2726FU\n%TORYO\n")
    assert make_opening_book(numpy.delete(long, 1), plies=4, least=1) == book
    assert len(make_opening_book(long, plies=4, least=1)) == 3
    # PSV in the order of the games makes the book of the records.
    kifulist = KIFU / "kifulist_test.txt"
    assert convert_positions.main([str(kifulist), str(tmp_path / "b.psv")]) == 0
    (tmp_path / "list.txt").write_text("b.psv")
    books = (make_opening_book(read_kifu(p), PLIES, 3) for p in (kifulist, tmp_path / "list.txt"))
    assert next(books) == next(books)


@pytest.mark.filterwarnings("error")
def test_positions_without_a_move_number_make_no_book(tmp_path, capsys):
    kifulist = games(tmp_path, EVEN)
    assert convert_positions.main([str(kifulist), str(tmp_path / "a.hcpe")]) == 0
    kifulist.write_text("a.hcpe")
    capsys.readouterr()
    assert main([str(kifulist), str(tmp_path / "book.db"), "--least", "1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "no move was played 1 times or more" in line
    assert not (tmp_path / "book.db").exists()


def test_the_list_is_not_replaced_by_the_book(tmp_path, capsys):
    kifulist = games(tmp_path, EVEN)
    before = kifulist.read_bytes()
    assert main([str(kifulist), str(kifulist)]) == 1
    assert "is the same file as the kifu list" in capsys.readouterr().err
    assert kifulist.read_bytes() == before


def test_an_earlier_book_is_kept(tmp_path, capsys):
    kifulist, path = games(tmp_path, EVEN), tmp_path / "new folder" / "book.db"
    assert main([str(kifulist), str(path), "--least", "1"]) == 0
    first = path.read_bytes()
    assert main([str(kifulist), str(path), "--least", "1", "--plies", "1"]) == 0
    assert "book.db.old" in capsys.readouterr().err
    assert path.with_name("book.db.old").read_bytes() == first != path.read_bytes()
    for _ in range(3):  # the same content is kept once
        assert main([str(kifulist), str(path), "--least", "1", "--plies", "1"]) == 0
    assert path.with_name("book.db.old2").read_bytes() == path.read_bytes()
    assert not path.with_name("book.db.old3").exists()
