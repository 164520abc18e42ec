"""Positions of files of any format to an HCPE or PSV file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pydlshogi.errors import UserError
from pydlshogi.files import remove_leftovers, write_beside
from pydlshogi.kifu.fixed import FixedFormat, encode_records
from pydlshogi.kifu.parts import FIXED_FORMATS
from pydlshogi.kifu.reading import stream
from pydlshogi.kifu.report import Report
from pydlshogi.kifu.sources import Source
from pydlshogi.positions import DRAW, NO_EVALUATION, UNKNOWN


@dataclass
class Conversion:
    """What a conversion has read and written.

    Attributes:
        report: What was read and what was left out.
        written: Number of positions written.
        not_written: Numbers of positions that the format cannot hold, by reason.
        without_evaluation: Number of positions written that have no evaluation. The formats
            cannot say so: their evaluation is written as 0.
    """

    report: Report = field(default_factory=Report)
    written: int = 0
    not_written: Counter[str] = field(default_factory=Counter)
    without_evaluation: int = 0


def format_named(name: str) -> FixedFormat | None:
    """Finds an output format by its name, in any case."""
    return {format_.name.lower(): format_ for format_ in FIXED_FORMATS}.get(name.lower())


def convert(
    sources: list[Source],
    output: Path,
    format_: FixedFormat,
    *,
    unknown_as_draw: bool = False,
    strict: bool = False,
    before_replacing: Callable[[], None] = lambda: None,
) -> Conversion:
    """Converts files.

    Args:
        sources: The files to read, of any format.
        output: The file to make or replace, atomically.
        format_: Its format.
        unknown_as_draw: Write positions with an unknown result as draws. Otherwise they
            are left out.
        strict: Also leave out games and records with an illegal move.
        before_replacing: Called when all is written and ``output`` is about to be replaced.

    Raises:
        UserError: ``output`` is one of the files to read, or no position can be written.
        OSError: ``output`` cannot be written.
    """
    for source in sources:
        if source.path and os.path.realpath(source.path) == os.path.realpath(output):
            raise UserError(f"{output} is one of the files to read. Name another output file.")
    conversion = Conversion()
    remove_leftovers(output)
    with write_beside(output) as file:
        batches = stream(sources, conversion.report, strict=strict, drop_duplicates=False)
        for positions, turns, _ in batches:
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
            raise UserError(f"no position can be written to {output}: {_first_reason(conversion)}.")
        before_replacing()
    return conversion


def _first_reason(conversion: Conversion) -> str:
    """Says why nothing was written."""
    for reason, count in conversion.not_written.most_common(1):
        return f"{count} positions: {reason}"
    excluded = conversion.report.excluded
    return str(excluded[0]) if excluded else "the input has no positions"
