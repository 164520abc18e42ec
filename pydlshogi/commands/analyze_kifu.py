"""The program analyze_kifu: a game with a model's opinion on every move."""

from __future__ import annotations

import argparse
import glob
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydlshogi.commands.arguments import (
    ArgumentParser,
    file_name,
    named_path,
    positive_int,
    positive_number,
)
from pydlshogi.commands.model_options import add_language, add_model, load_model
from pydlshogi.commands.program import program
from pydlshogi.commands.written import keep
from pydlshogi.player.engine_options import BACKENDS

if TYPE_CHECKING:
    from pydlshogi.analysis.analyzed import AnalyzedGame
    from pydlshogi.analysis.opinion import Network
    from pydlshogi.analysis.record import GameRecord


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="analyze_kifu",
        description="Analyzes a game: the rank and probability of each move among the legal moves. "
        "A model with a value head adds the probability of winning before and after the move. "
        "Writes three files: NAME_analysis.kif with comments, which ShogiGUI and ShogiHome show; "
        "NAME_analysis.png, a graph; NAME_analysis.html, a page with a board to click through.",
    )
    add = parser.add_argument
    add("record", type=file_name, help="CSA, KIF or KI2 file")
    add(
        "--output",
        "-o",
        type=named_path,
        default=Path(),
        metavar="FOLDER",
        help="folder of the three files (default: the current folder)",
    )
    add(
        "--game",
        type=positive_int,
        default=1,
        metavar="N",
        help="number of the game in a file with several (default: %(default)s)",
    )
    add(
        "--seconds",
        type=positive_number,
        metavar="S",
        help="search each position for S seconds; needs a model with policy and value "
        "(default: the network alone)",
    )
    add_model(parser)
    add(
        "--backend",
        choices=BACKENDS,
        default="own",
        help="what computes the network on a CPU: this package or OpenVINO, as the option backend "
        "of mcts_player (default: %(default)s)",
    )
    add_language(parser)
    return parser


@program("analyze_kifu")
def main(argv: Sequence[str] | None = None) -> int:
    """Analyzes a game as the command line says; returns the exit status."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.backend != parser.get_default("backend") and args.convolution == "chainer":
        parser.error("--backend has no effect with --convolution chainer: leave one of them out")
    from pydlshogi.analysis.record import read_record
    from pydlshogi.drawing.font import required_font
    from pydlshogi.outputs import prepare_outputs

    record = read_record(args.record, args.game)
    # Checked before the analysis, which may take minutes.
    required_font()
    paths = _outputs(args)
    for path in paths:
        prepare_outputs({"--output": str(path)}, {})
    network = load_model(args, args.backend)
    if args.backend == "auto":
        print(f"backend: {network.evaluator.backend}")
    analyzed = _analyze(record, network, args.seconds)
    for path in paths:  # of another record of this name, or with comments that a GUI has added
        keep("analyze_kifu", path)
    _write(analyzed, network.name, paths, args)
    for path in paths:
        print(path)
    return 0


def _outputs(args: argparse.Namespace) -> list[Path]:
    """Returns the paths of the three files: those of a.csa and a.kif in one folder differ."""
    from pydlshogi.kifu.sources import is_record_name

    record = Path(args.record)
    stem, suffix = record.stem, record.suffix
    beside = [path.name for path in record.parent.glob(f"{glob.escape(stem)}.*")]
    if any(
        name != record.name and is_record_name(name) for name in beside if Path(name).stem == stem
    ):
        stem += f"_{suffix[1:]}"
    stem += f"_{args.game}" if args.game > 1 else ""
    return [args.output / f"{stem}_analysis{suffix}" for suffix in (".kif", ".png", ".html")]


def _analyze(record: GameRecord, network: Network, seconds: float | None) -> AnalyzedGame:
    """Analyzes a game; a search shows its progress on a terminal."""
    from pydlshogi.analysis.analyzed import analyze

    if seconds is None:
        return analyze(record, network.opinions(record.boards()))
    from pydlshogi.analysis.searcher import Searcher
    from pydlshogi.bar import bar

    opinions = Searcher(network, seconds).opinions(record)
    total = len(record.moves) + 1
    return analyze(record, bar(opinions, total=total, unit="position"))


def _write(game: AnalyzedGame, model: str, paths: Sequence[Path], args: argparse.Namespace) -> None:
    """Writes the three files."""
    from pydlshogi.analysis.kif import write_kif
    from pydlshogi.analysis.pictures import course_of, page_of_game, title_of
    from pydlshogi.drawing.graph import save_graph
    from pydlshogi.drawing.page import write_page
    from pydlshogi.drawing.words import word

    language = args.language
    notes = [word("model", language, name=model)]
    if args.seconds is not None:
        notes.append(word("searched", language, seconds=args.seconds))
    write_kif(game, paths[0], model)
    save_graph(course_of(game, title_of(game.record)), paths[1], language=language)
    write_page(page_of_game(game, notes, language), paths[2], language=language)
