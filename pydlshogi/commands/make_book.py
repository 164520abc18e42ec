"""The program ``make_book``: makes an opening book from the games of a list."""

from __future__ import annotations

from collections.abc import Sequence

from pydlshogi.commands.arguments import ArgumentParser, positive_int
from pydlshogi.commands.program import program
from pydlshogi.commands.written import keep


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="make_book",
        description="Makes an opening book in YaneuraOu's text format from the games of a list. "
        "The engine's option Book_File names the book.",
    )
    add = parser.add_argument
    add("kifulist", help="text file with the paths of the games, one on each line")
    add("book", help="file to write")
    add(
        "--plies",
        type=positive_int,
        default=30,
        metavar="N",
        help="number of moves of each game (default: %(default)s)",
    )
    add(
        "--least",
        type=positive_int,
        default=2,
        metavar="N",
        help="leave out moves that were played fewer times (default: %(default)s)",
    )
    return parser


@program("make_book")
def main(argv: Sequence[str] | None = None) -> int:
    """Makes the book and prints its size; returns the exit status."""
    args = build_parser().parse_args(argv)
    from pydlshogi.player.book import write_book
    from pydlshogi.player.book_maker import make_book
    from pydlshogi.read_kifu import read_kifu
    from pydlshogi.training.outputs import prepare_outputs

    prepare_outputs({"the book": args.book}, {"the kifu list": args.kifulist})
    book = make_book(read_kifu(args.kifulist), args.plies, args.least)
    keep("make_book", args.book)
    write_book(args.book, book)
    moves = sum(len(moves) for moves in book.values())
    print(f"{args.book}: {len(book)} positions, {moves} moves")
    return 0
