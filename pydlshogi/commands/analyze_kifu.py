"""The program analyze_kifu: a game with a model's opinion on every move."""

from __future__ import annotations

import argparse
import glob
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydlshogi.analysis import USUAL_SECONDS
from pydlshogi.commands.arguments import (
    ArgumentParser,
    add_number,
    file_name,
    named_path,
    non_negative_number,
    positive_int,
)
from pydlshogi.commands.model_options import add_language, add_model, load_model
from pydlshogi.commands.program import program
from pydlshogi.commands.written import keep
from pydlshogi.player.engine_options import BACKENDS

if TYPE_CHECKING:
    from pydlshogi.analysis.analyzed import AnalyzedGame
    from pydlshogi.analysis.opinion import Network


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="analyze_kifu",
        description="Analyzes a game by a short search of each position: the rank of each move, "
        "the probability of winning before and after it, the best moves and their lines. "
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
    add_number(parser, "--game", positive_int, "number of the game in a file with several", 1)
    add(
        "--seconds",
        type=non_negative_number,
        metavar="S",
        help="search each position for S seconds; 0: the network alone (default: "
        f"{USUAL_SECONDS:g}, or 0 with a model that lacks a policy or a value)",
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
    from pydlshogi.analysis.analyzed import analyze
    from pydlshogi.analysis.record import read_record
    from pydlshogi.bar import bar
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
    seconds = _seconds(network, args.seconds)
    from pydlshogi.analysis.searcher import opinions_of

    opinions = opinions_of(network, record, seconds)
    game = analyze(record, bar(opinions, total=len(record.moves) + 1, unit="position"))
    for path in paths:  # of another record of this name, or with comments that a GUI has added
        keep("analyze_kifu", path)
    _write(game, network.name, seconds, paths, args.language)
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


def _seconds(network: Network, wanted: float | None) -> float:
    """Returns the seconds of search for each position; the default is 0 for a model that cannot."""
    if wanted is not None:
        return wanted
    if network.can_search():
        return USUAL_SECONDS
    lacking = "value" if network.evaluator.has_policy else "policy"
    print(f"{network.name} has no {lacking}, so its network is asked without a search.")
    return 0.0


def _write(
    game: AnalyzedGame, model: str, seconds: float, paths: Sequence[Path], language: str
) -> None:
    """Writes the three files."""
    from pydlshogi.analysis.kif import write_kif
    from pydlshogi.analysis.pictures import course_of, page_of_game, title_of
    from pydlshogi.drawing.graph import save_graph
    from pydlshogi.drawing.page import write_page

    write_kif(game, paths[0], model)
    save_graph(course_of(game, title_of(game.record)), paths[1], language=language)
    write_page(page_of_game(game, model, seconds, language), paths[2], language=language)
