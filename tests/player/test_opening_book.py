"""Opening books in YaneuraOu's text format."""

import os
import time

import pytest

from pydlshogi.player.opening_book import BookError, BookMove, book_key, read_book, write_book

START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b -"

TEXT = f"""\ufeff#YANEURAOU-DB2016 1.00\r
# a comment\r
sfen {START} 1\r
7g7f 3c3d 83 32 12\r
2g2f none -5 30\r
5g5f\r
  sfen {START.replace(" b ", " w ")} 2
8c8d 2g2f 0 0 1
"""


def test_a_book_is_read(tmp_path):
    path = tmp_path / "a book.db"
    path.write_bytes(TEXT.encode())
    book = read_book(path)
    assert book[START] == [
        BookMove("7g7f", "3c3d", 83, 32, 12),
        BookMove("2g2f", "", -5, 30, 1),
        BookMove("5g5f"),
    ]
    assert set(book) == {START, START.replace(" b ", " w ")}


@pytest.mark.parametrize(
    ("columns", "move"),
    [
        ("none +55 3 4", BookMove("7g7f", score=55, depth=3, times=4)),
        ("none none 32 4", BookMove("7g7f", depth=32, times=4)),
    ],
)
def test_each_number_keeps_its_column(tmp_path, columns, move):
    path = tmp_path / "book.db"
    path.write_text(f"sfen {START} 1\n7g7f {columns}\n")
    assert read_book(path)[START] == [move]


@pytest.mark.parametrize("line", ["resign none 0 0 0", "none", "win none 0 0 0"])
def test_a_position_without_a_move_to_play_is_accepted(tmp_path, line):
    path = tmp_path / "book.db"
    path.write_text(f"sfen {START} 1\n{line}\n")
    assert not read_book(path)[START]


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "book.db"
    path.write_bytes(TEXT.encode())
    book = read_book(path)
    write_book(tmp_path / "again.db", book)
    assert read_book(tmp_path / "again.db") == book
    assert (tmp_path / "again.db").read_text().startswith("#YANEURAOU-DB2016 1.00\nsfen ")


@pytest.mark.parametrize("line", ["# a\u0085b", "// a\u2028b", "# a\x0cb", "  # a", "\x1a"])
def test_comments_may_have_any_character(tmp_path, line):
    path = tmp_path / "book.db"
    path.write_text(f"#YANEURAOU-DB2016 1.00\n{line}\nsfen {START} 1\n7g7f\n", encoding="utf-8")
    assert read_book(path)[START] == [BookMove("7g7f")]


@pytest.mark.parametrize(
    "hands, ordered", [("2PRB", "RB2P"), ("p1S10P2b", "S10P2bp"), ("-", "-"), ("rR", "Rr")]
)
def test_the_order_of_the_pieces_in_hand_does_not_matter(hands, ordered):
    board = "4k4/9/9/9/9/9/9/9/4K4 b"
    assert book_key(f"{board} {hands} 1") == f"{board} {ordered}"


def test_the_move_number_does_not_matter():
    assert book_key(f"{START} 1") == book_key(f"{START} 17") == START


@pytest.mark.parametrize(
    "text",
    ["7g7f none 0 0 1\n", f"sfen {START} 1\nhello\n", "PK\x03\x04\n", f"sfen {START} 1\n7g\n"],
)
def test_another_file_is_refused_with_its_line(tmp_path, text):
    path = tmp_path / "no book.db"
    path.write_text(text)
    with pytest.raises(BookError, match=r"no book.db, line \d: .* Choose another file\."):
        read_book(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BookError, match="missing.db cannot be read: No such file"):
        read_book(tmp_path / "missing.db")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_what_is_no_plain_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link.db").symlink_to("/dev/zero")
    for path in (tmp_path / "fifo", "/dev/zero", tmp_path / "link.db", tmp_path):
        with pytest.raises(BookError, match="cannot be read: it is no plain file. Choose another"):
            read_book(path)


@pytest.mark.parametrize(
    "line", [f"sfen {START[:-1]}{'1' * 60_000}P 1", "7g7f none 0 0 " + "1" * 60_000]
)
def test_a_line_that_is_too_long_is_refused_at_once(tmp_path, line):
    path = tmp_path / "book.db"
    path.write_text(f"sfen {START} 1\n# {'c' * 10**6}\n{line}\n")
    start = time.process_time()
    with pytest.raises(BookError, match="book.db, line 3: neither a position nor a move"):
        read_book(path)
    assert time.process_time() - start < 1
