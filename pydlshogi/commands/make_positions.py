"""The program ``make_positions``: game records and position files to shards for training."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pydlshogi.commands.arguments import ArgumentParser, file_name, named_path, positive_int
from pydlshogi.commands.program import program
from pydlshogi.commands.written import keep
from pydlshogi.text import counted


def build_parser() -> ArgumentParser:
    """Builds the command line parser."""
    parser = ArgumentParser(
        prog="make_positions",
        description="Turn game records (CSA, KIF, KI2) and position files (HCPE, HCPE3, PSV) into "
        "shards, from which training reads its batches: for data larger than memory. A training "
        "list may name shards. If the program is interrupted, the same command continues.",
    )
    add = parser.add_argument
    add(
        "kifulist",
        type=file_name,
        metavar="LIST",
        help="text file with the paths of the files, or of folders or archives, one a line",
    )
    add(
        "output",
        type=named_path,
        metavar="OUTPUT",
        help="folder that receives the shards, and list.txt, which names them",
    )
    add(
        "--shard_size",
        type=positive_int,
        default=1 << 20,
        metavar="N",
        help="positions in a shard, at most (default: %(default)s, about 100 MB)",
    )
    add(
        "--strict",
        action="store_true",
        help="leave out what has an illegal move, such as one that leaves the king in check "
        "(slower)",
    )
    add("--report", type=named_path, metavar="FILE", help="write what was left out and why, as TSV")
    return parser


@program("make_positions", interrupted="The same command continues.")
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    args = build_parser().parse_args(argv)
    # numpy is imported after the options have been checked.
    from pydlshogi.kifu.sharding import LIST, PROGRESS, lists_shards, make_shards
    from pydlshogi.kifu.sources import read_list
    from pydlshogi.lock import lock_outputs
    from pydlshogi.outputs import check_report, prepare_outputs

    report = "" if args.report is None else str(args.report)
    check_report(report)
    sources = read_list(args.kifulist)
    shard_list = args.output / LIST
    prepare_outputs(
        {"--report": report, "the list in OUTPUT,": str(shard_list)}, {"LIST": args.kifulist}
    )
    with lock_outputs(shard_list):
        if not ((args.output / PROGRESS).exists() and lists_shards(shard_list)):
            keep("make_positions", shard_list)
        made = make_shards(sources, args.output, strict=args.strict, size=args.shard_size)
    if args.report is not None:
        made.report.write_tsv(args.report)
    made.report.print(args.kifulist)
    if made.report.unreadable:
        print(
            f"files that could not be read: {made.report.unreadable}. Unless they have changed, "
            "the same command tries them again.",
            file=sys.stderr,
        )
    missing = sum(bool(source.problem) for source in sources)
    if missing:
        print(
            f"files or folders that are missing or cannot be used: {missing}. When they are there, "
            "the same command adds their positions.",
            file=sys.stderr,
        )
    continued = ", continuing an earlier run" if made.continued else ""
    print(f"{counted(len(made.shards), 'shard')}{continued}. Train with the list {shard_list}.")
    return 0
