"""Speed of kifu data: reading records, comments, loading the cache, making planes.

    python benchmarks/kifu.py [LIST]

Each part compares this package with the published way (tests/kifu_reference.py, on
python-shogi). Reading is also compared with cshogi's usual conversion of CSA to HCPE. The
sides take turns for some rounds. A figure is the median over the rounds; a ratio compares
two figures of one run. The slow sides read only the first games of the list. LIST names CSA
files only. The embedded games, the default, are too few to show the speed on a long list.
Peak memory is measured on Linux only.

Comments: the same games without comments, with floodgate's evaluations (``'** N``), and with
evaluations and variations. Their figures are CPU time of one thread, a byte of text.
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import argparse
import importlib.metadata
import itertools
import os
import pickle
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import unittest.mock
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy
import shogi

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import kifu_reference  # noqa: E402

from pydlshogi.commands.arguments import positive_int  # noqa: E402
from pydlshogi.commands.program import program  # noqa: E402
from pydlshogi.features import make_input_features_from_board, make_input_planes  # noqa: E402
from pydlshogi.kifu.cache import load_cache, save_cache  # noqa: E402
from pydlshogi.kifu.reading import read_positions  # noqa: E402
from pydlshogi.kifu.sources import read_list  # noqa: E402

BATCHES = (32, 128, 512, 1024)
#: Prints the peak memory, in KiB, of a process that reads a list and does nothing else.
#: Not ru_maxrss: that begins with what this process has.
PEAK = """
import sys
from pydlshogi.read_kifu import read_kifu
read_kifu(sys.argv[1])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def cshogi_conversion(paths: Sequence[str]) -> int:
    """Converts CSA files to HCPE as cshogi's users do; returns the number of positions."""
    import cshogi
    import cshogi.CSA

    parser = cshogi.CSA.Parser()
    board = cshogi.Board()
    converted = numpy.zeros(100_000, dtype=cshogi.HuffmanCodedPosAndEval)
    count = 0
    for path in paths:
        for record in parser.parse_file(path):
            board.set_sfen(record.sfen)
            for move in record.moves:
                position = converted[count % len(converted)]
                board.to_hcp(position["hcp"])
                position["bestMove16"] = cshogi.move16(move)
                position["gameResult"] = record.win
                board.push(move)
                count += 1
    return count


def timed(function: Callable[[], Any], repeats: int = 1) -> float:
    """Gives the seconds that a call takes, the mean of some."""
    start = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - start) / repeats


def in_turns(sides: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Measures the sides in turns; returns the median of each."""
    figures: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            figures[name].append(side())
    return {name: statistics.median(values) for name, values in figures.items()}


def read_on_one_thread(kifu_list: Path) -> None:
    """Reads with one thread, like the other sides. The default is two threads."""
    with unittest.mock.patch("pydlshogi.kifu.reading._WORKERS", 1):
        read_positions(kifu_list)


def reading(kifu_list: Path, games: int, rounds: int) -> None:
    """CSA files to positions: ours on two threads and on one, cshogi, published."""
    paths = [source.path for source in read_list(kifu_list)]
    _, report = read_positions(kifu_list)
    few, more = paths[: games // 10], paths[:games]
    few_count = len(kifu_reference.read_positions(few))
    more_count = cshogi_conversion(more)
    speed = in_turns(
        {
            "ours": lambda: report.positions / timed(lambda: read_positions(kifu_list)),
            "one thread": lambda: report.positions / timed(lambda: read_on_one_thread(kifu_list)),
            "cshogi": lambda: more_count / timed(lambda: cshogi_conversion(more)),
            "published": lambda: few_count / timed(lambda: kifu_reference.read_positions(few)),
        },
        rounds,
    )
    print(f"CSA files to positions ({report.positions} positions of {report.games} games)")
    for name, figure in speed.items():
        print(f"  {name:12}{figure:12,.0f} positions/s   ours: {speed['ours'] / figure:.1f} x")


def commented(record: bytes, variation: bytes) -> bytes:
    """Adds an evaluation after each move of a CSA record, in place of its comments."""
    lines = [line for line in record.split(b"\n") if not line.startswith(b"'**")]
    source = random.Random(record)
    for number, line in enumerate(lines):
        if line[:1] in (b"+", b"-") and len(line) > 1:
            size = source.choice((100, 1000, 5000, 100_000))
            lines[number] = b"%b\n'** %d%b" % (line, source.randint(-size, size), variation)
    return b"\n".join(lines)


def comments(kifu_list: Path, games: int, rounds: int, folder: Path) -> None:
    """Records with comments against the same records without."""
    paths = [source.path for source in read_list(kifu_list)][:games]
    kinds = {"none": None, "evaluations": b"", "variations": b" +7776FU -3334FU" * 6}
    lists, sizes = {}, {}
    for kind, variation in kinds.items():
        (folder / kind).mkdir()
        for number, path in enumerate(paths):
            record = Path(path).read_bytes()
            if variation is not None:
                record = commented(record, variation)
            else:
                record = re.sub(rb"^'\*\*.*\n", b"", record, flags=re.MULTILINE)
            (folder / kind / f"{number:05}.csa").write_bytes(record)
        lists[kind] = folder / f"{kind}.txt"
        lists[kind].write_text(f"{kind}\n")
        sizes[kind] = sum(source.size for source in read_list(lists[kind]))

    def nanoseconds(kind: str) -> float:
        start = time.process_time()
        read_on_one_thread(lists[kind])
        return 1e9 * (time.process_time() - start) / sizes[kind]

    cost = in_turns({kind: lambda kind=kind: nanoseconds(kind) for kind in kinds}, rounds)
    print(f"comments in {len(paths)} records, nanoseconds of one thread a byte")
    for kind, figure in cost.items():
        print(f"  {kind:12}{figure:8.1f}   {figure / cost['none']:.2f} of none")


def loading(kifu_list: Path, games: int, rounds: int, folder: Path) -> None:
    """Speed and size of the cache and of the published pickle."""
    paths = [source.path for source in read_list(kifu_list)][:games]
    published = kifu_reference.read_positions(paths)
    book = folder / "published.pickle"
    book.write_bytes(pickle.dumps(published, pickle.HIGHEST_PROTOCOL))
    positions, report = read_positions(kifu_list)
    ours = folder / "ours.pickle"
    save_cache(ours, "benchmark", positions, report.to_plain())

    def load_published() -> float:
        with open(book, "rb") as file:
            return len(published) / timed(lambda: pickle.load(file))

    speed = in_turns(
        {
            "ours": lambda: len(positions) / timed(lambda: load_cache(ours, "benchmark")),
            "published": load_published,
        },
        rounds,
    )
    size = {
        "ours": ours.stat().st_size / len(positions),
        "published": book.stat().st_size / len(published),
    }
    print("loading the cache")
    for name, figure in speed.items():
        print(
            f"  {name:12}{figure:12,.0f} positions/s, {size[name]:.0f} bytes each"
            f"   ours: {speed['ours'] / figure:.1f} x"
        )


def planes(kifu_list: Path, rounds: int) -> None:
    """Packed positions, and one board, to planes."""
    paths = [source.path for source in itertools.islice(read_list(kifu_list), 20)]
    published = kifu_reference.read_positions(paths)
    positions = read_positions(kifu_list)[0][: len(published)]
    print("positions to planes, microseconds a position")
    for batch in BATCHES:
        cost = in_turns(
            {
                "ours": lambda batch=batch: (
                    1e6 / batch * timed(lambda: make_input_planes(positions[:batch]), 10)
                ),
                "published": lambda batch=batch: (
                    1e6 / batch * timed(lambda: kifu_reference.make_batch(published[:batch]))
                ),
            },
            rounds,
        )
        ratio = cost["published"] / cost["ours"]
        print(
            f"  batch {batch:5}: ours {cost['ours']:7.2f}, published {cost['published']:8.1f}"
            f"   ours: {ratio:.0f} x"
        )
    board = shogi.Board()
    single = in_turns(
        {"": lambda: timed(lambda: make_input_features_from_board(board), 200)}, rounds
    )
    print(f"  one board at play: {1e6 * single['']:.1f}")


def memory(kifu_list: Path) -> None:
    """Peak memory of reading the whole list."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        [sys.executable, "-c", PEAK, str(kifu_list)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    print(f"peak memory of reading: {int(answer.stdout) / 2**10:.0f} MiB")


@program("benchmarks/kifu.py")
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmarks."""
    parser = argparse.ArgumentParser(description="Measures the speed of reading kifu.")
    parser.add_argument("list", nargs="?", type=Path, default=ROOT / "kifu" / "kifulist_train.txt")
    parser.add_argument(
        "--games", type=positive_int, default=1000, help="games that the slow sides read"
    )
    parser.add_argument("--rounds", type=positive_int, default=5)
    args = parser.parse_args(argv)
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "python-shogi", "cshogi")
    )
    print(f"Python {platform.python_version()}, {versions}, {os.cpu_count()} cores")
    reading(args.list, args.games, args.rounds)
    with tempfile.TemporaryDirectory() as folder:
        comments(args.list, args.games, args.rounds, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        loading(args.list, args.games // 10, args.rounds, Path(folder))
    planes(args.list, args.rounds)
    if sys.platform == "linux":
        memory(args.list)
    return 0


if __name__ == "__main__":
    sys.exit(main())
