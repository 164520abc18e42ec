"""The program ``convert_positions``: game records and position files to HCPE or PSV."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydlshogi.commands.arguments import ArgumentParser, named_path
from pydlshogi.commands.program import program
from pydlshogi.errors import UserError

if TYPE_CHECKING:
    from pydlshogi.kifu.fixed import FixedFormat
    from pydlshogi.kifu.report import Report
    from pydlshogi.kifu.sources import Source


@dataclass
class Conversion:
    """What a conversion has read, written, and could not write, with the reasons.

    The formats cannot say that a position has no evaluation; these are written as 0 and counted.
    """

    report: Report
    written: int = 0
    not_written: Counter[str] = field(default_factory=Counter)
    without_evaluation: int = 0


def build_parser() -> ArgumentParser:
    """Builds the command line parser."""
    parser = ArgumentParser(
        prog="convert_positions",
        description="Convert game records (CSA, KIF, KI2) and position files (HCPE, HCPE3, PSV) to "
        "an HCPE or PSV file. Records and positions that are not valid are left out and reported.",
    )
    add = parser.add_argument
    add(
        "input",
        type=named_path,
        metavar="IN",
        help="a file (.csa, .kif, .ki2, .hcpe, .hcpe3, .psv, .bin for PSV), a folder or an archive "
        "(.zip, .7z); or a text file with one such path a line",
    )
    add(
        "output",
        type=named_path,
        metavar="OUT",
        help="file to write; an existing one is kept as OUT.old",
    )
    add(
        "--format",
        choices=("hcpe", "psv"),
        help="format of OUT (default: by its suffix, .hcpe, .psv or .bin)",
    )
    add(
        "--unknown_result",
        choices=("leave_out", "draw"),
        default="leave_out",
        help="positions of games without a known result, which neither format can hold: leave "
        "them out, or write them as draws (default: %(default)s)",
    )
    add(
        "--strict",
        action="store_true",
        help="also leave out what has an illegal move, such as one that leaves the king in "
        "check; much slower",
    )
    add("--report", type=named_path, metavar="FILE", help="write what was left out and why, as TSV")
    return parser


@program("convert_positions")
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    args = build_parser().parse_args(argv)
    # numpy is imported after the options have been checked.
    from pydlshogi.commands.written import keep
    from pydlshogi.lock import lock_outputs
    from pydlshogi.outputs import check_report, prepare_outputs

    format_ = output_format(args.output, args.format)
    report = "" if args.report is None else str(args.report)
    check_report(report)
    sources = find_sources(args.input)
    prepare_outputs({"OUT": str(args.output), "--report": report}, {"IN": str(args.input)})
    with lock_outputs(args.output):
        conversion = convert(
            sources,
            args.output,
            format_,
            unknown_as_draw=args.unknown_result == "draw",
            strict=args.strict,
            before_replacing=lambda: keep("convert_positions", args.output),
        )
    if args.report is not None:
        conversion.report.write_tsv(args.report)
        print(f"{args.report}: what was left out, with reasons")
    conversion.report.print(str(args.input))
    print_summary(conversion, args.output)
    return 0


def output_format(output: Path, name: str | None) -> FixedFormat:
    """Finds the format to write.

    Raises:
        UserError: neither the option nor the suffix names one, or the suffix is another format's.
    """
    from pydlshogi.kifu.fixed import fixed_format
    from pydlshogi.kifu.formats import RECORD_SUFFIXES

    found = fixed_format(f".{name}" if name else output.name)
    of_another = output.name.lower().endswith(RECORD_SUFFIXES)
    if name and of_another and fixed_format(output.name) is not found:
        raise UserError(
            f"{output} has the suffix of another format than {name}. Programs would read it in "
            f"that format. Use the suffix .{name}."
        )
    if found is None:
        raise UserError(
            f"the suffix of {output} names no format. Call it .hcpe or .psv, or add --format."
        )
    return found


def find_sources(path: Path) -> list[Source]:
    """Finds the files to read: one file, those of a folder or archive, or those of a list.

    Raises:
        UserError: the path does not exist, or is a shard or a list that names no file.
    """
    from pydlshogi.kifu.shards import SUFFIX
    from pydlshogi.kifu.sources import find_path, is_readable_name, read_list

    if path.name.lower().endswith(SUFFIX):
        raise UserError(f"{path} is a shard, which this program cannot read. Name its records.")
    if not path.exists():
        raise UserError(f"{path}: there is no such file or folder. Check its path.")
    if path.is_dir() or is_readable_name(path.name):
        return find_path(str(path))
    return read_list(path)


def convert(
    sources: list[Source],
    output: Path,
    format_: FixedFormat,
    *,
    unknown_as_draw: bool = False,
    strict: bool = False,
    before_replacing: Callable[[], None] = lambda: None,
) -> Conversion:
    """Converts files to positions of one format; ``output`` is made or replaced atomically.

    With ``unknown_as_draw``, positions with an unknown result become draws; otherwise they are left
    out. ``strict`` also leaves out games and records with an illegal move. ``before_replacing`` is
    called when all is written.

    Raises:
        UserError: ``output`` is one of the files to read, or no position can be written.
        OSError: ``output`` cannot be written.
    """
    from pydlshogi.files import remove_leftovers, write_beside
    from pydlshogi.kifu.fixed import encode_records
    from pydlshogi.kifu.reading import stream
    from pydlshogi.kifu.report import Report
    from pydlshogi.positions import DRAW, NO_EVALUATION, UNKNOWN

    for source in sources:
        if source.path and os.path.realpath(source.path) == os.path.realpath(output):
            raise UserError(f"{output} is one of the files to read. Name another output file.")
    conversion = Conversion(Report())
    remove_leftovers(output)
    with write_beside(output) as file:
        batches = stream(sources, conversion.report, strict=strict, drop_duplicates=False)
        for batch in batches:
            positions, turns = batch.positions, batch.turns
            if unknown_as_draw:
                results = positions["result"]
                results[results == UNKNOWN] = DRAW
            records, left_out = encode_records(positions, turns, format_)
            file.write(records.tobytes())
            conversion.written += len(records)
            conversion.not_written.update(record.reason for record in left_out)
            missing = positions["evaluation"] == NO_EVALUATION
            missing[[record.number for record in left_out]] = False
            conversion.without_evaluation += int(missing.sum())
        if not conversion.written:
            reasons = [
                *(f"{n} positions: {why}" for why, n in conversion.not_written.most_common(1)),
                *map(str, conversion.report.excluded[:1]),
                "the input has no positions",
            ]
            raise UserError(f"no position can be written to {output}: {reasons[0]}.")
        before_replacing()
    return conversion


def print_summary(conversion: Conversion, output: Path) -> None:
    """Prints how many positions were written, what they lack, and why others were not."""
    print(f"{output}: {conversion.written} positions written")
    if conversion.without_evaluation:
        print(
            f"  {conversion.without_evaluation} positions have no evaluation; "
            "their evaluation was written as 0"
        )
    for reason, count in conversion.not_written.most_common():
        print(f"  {count} not written: {reason}")
