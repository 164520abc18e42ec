"""The program ``fit_eval_scale``: fits the scale that turns evaluations into probabilities."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pydlshogi import table
from pydlshogi.commands.arguments import ArgumentParser, file_name
from pydlshogi.commands.program import program
from pydlshogi.commands.written import add_picture_output, check_picture_output, load_games


def build_parser() -> ArgumentParser:
    """Builds the command line parser."""
    parser = ArgumentParser(
        prog="fit_eval_scale",
        description="Print how often each engine evaluation won, and the scale that fits the "
        "probability sigmoid(evaluation / scale) to the results. Give the scale to training as "
        "--eval_scale.",
    )
    add = parser.add_argument
    add(
        "kifulist", type=file_name, help="text file with the paths of records that have evaluations"
    )
    add_picture_output(parser, "draw the table and the fit to a .png, .svg or .pdf file")
    add("--tsv", action="store_true", help="print tab-separated values instead of Markdown")
    return parser


@program("fit_eval_scale")
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    args = build_parser().parse_args(argv)
    from pydlshogi.training import eval_scale

    if args.output is not None:
        check_picture_output(args.output, args.kifulist)
    games = load_games(args.kifulist)
    counts = eval_scale.count_evaluations(games.positions)
    scale = eval_scale.fit_scale(counts)
    form = table.tsv if args.tsv else table.markdown
    print(form(*eval_scale.as_table(eval_scale.tabulate(counts, scale))), end="")
    known = int(counts.positions.sum())
    # The table alone is the standard output that another program reads.
    summary = sys.stderr if args.tsv else sys.stdout
    print(
        f"{known} of {len(games.positions)} positions have an evaluation and a result", file=summary
    )
    print(f"eval_scale = {scale:.0f}", file=summary)
    if args.output is not None:
        eval_scale.save_picture(args.output, counts, scale)
        print(f"{args.output}: picture", file=sys.stderr)
    return 0
