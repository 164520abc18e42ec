"""The program ``make_opening_book``: makes an opening book from the games of a list."""

from __future__ import annotations

from collections.abc import Sequence

from pydlshogi.commands.arguments import ArgumentParser, add_number, file_name, positive_int
from pydlshogi.commands.program import program
from pydlshogi.commands.written import keep


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="make_opening_book",
        description="Makes an opening book in YaneuraOu's text format from the games of a list. "
        "The engine's option Book_File names the book. Handicap games are left out.",
    )
    add = parser.add_argument
    add("kifulist", type=file_name, help="text file with the paths of the games, one on each line")
    add("book", type=file_name, help="file to write")
    add_number(parser, "--plies", positive_int, "number of moves of each game", 30)
    text = "leave out moves that were played fewer times"
    add_number(parser, "--least", positive_int, text, 2)
    return parser


@program("make_opening_book")
def main(argv: Sequence[str] | None = None) -> int:
    """Makes the book and prints its size; returns the exit status."""
    args = build_parser().parse_args(argv)
    from pydlshogi.errors import UserError
    from pydlshogi.outputs import check_book, prepare_outputs
    from pydlshogi.player.opening_book import FORMAT, make_opening_book, write_book
    from pydlshogi.read_kifu import read_kifu

    prepare_outputs({"the book": args.book}, {"the kifu list": args.kifulist})
    check_book(args.book, FORMAT)
    book = make_opening_book(read_kifu(args.kifulist), args.plies, args.least)
    if not book:
        raise UserError(
            f"no move was played {args.least} times or more in the games of {args.kifulist}, so "
            "there is no book. Give more games, or lower --least. Handicap games and positions "
            "without a move number, as in HCPE files, are left out."
        )
    keep("make_opening_book", args.book)
    write_book(args.book, book)
    moves = sum(len(moves) for moves in book.values())
    print(f"{args.book}: {len(book)} positions, {moves} moves")
    return 0
