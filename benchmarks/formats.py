"""Speed of HCPE and PSV files: packed positions from them, and back.

    python benchmarks/formats.py [LIST]

The games of LIST (default: the embedded ones) are written once as HCPE and PSV, and repeated
until there are ``--positions`` of them. Both programs then read the same files: ours on two
threads and on one, cshogi as its users do, a board and a move for each record. Each side takes
its turn in each round. A figure is the median over the rounds. The time of the CPU says what
a busy machine hides. cshogi reads only some of the records.
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import argparse
import importlib.metadata
import os
import platform
import statistics
import sys
import tempfile
import time
import unittest.mock
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from pydlshogi.commands.arguments import positive_int  # noqa: E402
from pydlshogi.commands.convert_positions import convert  # noqa: E402
from pydlshogi.kifu.fixed import (  # noqa: E402
    FIXED_FORMATS,
    FixedFormat,
    decode_records,
    encode_records,
)
from pydlshogi.kifu.reading import read_positions  # noqa: E402
from pydlshogi.kifu.sources import read_list  # noqa: E402

#: Records that cshogi reads, and that are encoded.
FEW = 20_000


def cshogi_decode(records: numpy.ndarray) -> int:
    """Reads boards, moves and results by cshogi, and packs the boards as bytes of pieces."""
    import cshogi

    board = cshogi.Board()
    boards = numpy.empty((len(records), 81), numpy.uint8)
    is_hcpe = "hcp" in records.dtype.names
    for number, record in enumerate(records):
        if is_hcpe:
            board.set_hcp(record["hcp"])
            board.move_from_move16(int(record["bestMove16"]))
        else:
            board.set_psfen(record["sfen"])
            board.move_from_psv(int(record["move"]))
        boards[number] = board.pieces
        board.pieces_in_hand  # noqa: B018
    return len(boards)


def cshogi_repack(records: numpy.ndarray) -> int:
    """Unpacks and packs boards by cshogi."""
    import cshogi

    board = cshogi.Board()
    packed = numpy.empty(32, numpy.uint8)
    is_hcpe = "hcp" in records.dtype.names
    read, write = (board.set_hcp, board.to_hcp) if is_hcpe else (board.set_psfen, board.to_psfen)
    for row in records["hcp" if is_hcpe else "sfen"]:
        read(row)
        write(packed)
    return len(records)


class Figure(NamedTuple):
    """Positions a second, and microseconds of all CPUs together for a position."""

    speed: float
    cpu: float


def time_of(count: int, call: Callable[[], object]) -> Figure:
    """Measures a call that handles ``count`` positions."""
    start, cpu_start = time.perf_counter(), time.process_time()
    call()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    return Figure(count / seconds, 1e6 * cpu / count)


def measure(sides: dict[str, Callable[[], Figure]], rounds: int) -> dict[str, Figure]:
    """Lets sides measure in turns; gives the medians of each."""
    figures: dict[str, list[Figure]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            figures[name].append(side())
    return {
        name: Figure(*(statistics.median(column) for column in zip(*values)))
        for name, values in figures.items()
    }


def write_file(kifu_list: Path, path: Path, format_: FixedFormat, positions: int) -> None:
    """Writes the games of a list again and again until there are enough positions."""
    convert(read_list(kifu_list), path, format_)
    content = path.read_bytes()
    times = -(-positions * format_.record.itemsize // len(content))
    with path.open("wb") as file:
        for _ in range(times):
            file.write(content)


def benchmark(
    format_: FixedFormat, kifu_list: Path, folder: Path, positions: int, rounds: int
) -> None:
    """Measures one format and prints its lines."""
    path = folder / f"games{format_.suffixes[0]}"
    write_file(kifu_list, path, format_, positions)
    count = path.stat().st_size // format_.record.itemsize
    a_list = folder / "list.txt"
    a_list.write_text(f"{path.name}\n")
    few = numpy.fromfile(path, format_.record, FEW)
    decoded = decode_records(few.tobytes(), format_)

    def read_on(workers: int) -> Figure:
        with unittest.mock.patch("pydlshogi.kifu.reading._WORKERS", workers):
            return time_of(count, lambda: read_positions(a_list))

    speed = measure(
        {
            "read, two threads": lambda: read_on(2),
            "read, one thread": lambda: read_on(1),
            "read, cshogi": lambda: time_of(len(few), lambda: cshogi_decode(few)),
            "encode": lambda: time_of(
                len(few), lambda: encode_records(decoded.positions, decoded.turns, format_)
            ),
            "boards there and back, cshogi": lambda: time_of(len(few), lambda: cshogi_repack(few)),
        },
        rounds,
    )
    print(f"{format_.name} ({count:,} records)")
    for name, figure in speed.items():
        print(f"  {name:30}{figure.speed:12,.0f} positions/s, {figure.cpu:6.2f} us of CPU each")
    ratio = speed["read, two threads"].speed / speed["read, cshogi"].speed
    print(f"  reading: {ratio:.1f} times cshogi")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description="Speed of HCPE and PSV files against cshogi.")
    parser.add_argument("list", nargs="?", type=Path, default=ROOT / "kifu" / "kifulist_train.txt")
    parser.add_argument("--positions", type=positive_int, default=1_000_000)
    parser.add_argument("--rounds", type=positive_int, default=5)
    args = parser.parse_args(argv)
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "cshogi")
    )
    print(f"Python {platform.python_version()}, {versions}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        for format_ in FIXED_FORMATS:
            benchmark(format_, args.list, Path(folder), args.positions, args.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
