"""The program reinforce: self-play, training and a match, again and again."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

from pydlshogi.commands.arguments import ArgumentParser, positive_int, positive_number
from pydlshogi.commands.program import program
from pydlshogi.commands.self_play import add_network_and_folder, load
from pydlshogi.commands.train_options import wrong_value


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="reinforce",
        description="Improves a two-headed network by its own games: self-play, training, a match "
        "of the new network against the best one, and again. FOLDER/index.html shows the "
        "progress. The same command goes on after an interruption.",
    )
    add_network_and_folder(parser, "the first network, if FOLDER is new", "folder of the loop")
    add = parser.add_argument
    add("--hours", type=positive_number, metavar="H", help="end after H hours (default: never)")
    add("--cycles", type=positive_int, metavar="N", help="end after cycle N (default: never)")
    add(
        "--config",
        type=Path,
        metavar="FILE",
        help="configuration that replaces FOLDER/reinforce.json, which has the defaults at first",
    )
    return parser


@program("reinforce", interrupted="The same command goes on.")
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the loop; returns the exit status."""
    args = build_parser().parse_args(argv)
    # These modules import Chainer; a wrong command line has been reported before.
    from pydlshogi.lock import lock_outputs
    from pydlshogi.selfplay.loop import Loop, prepare
    from pydlshogi.selfplay.settings import load_settings

    first = args.folder / "best"
    # A wrong model leaves no folder.
    device = load(first if first.exists() else args.model, args).evaluator.device
    end = time.monotonic() + 3600 * args.hours if args.hours else math.inf
    args.folder.mkdir(parents=True, exist_ok=True)
    config = args.folder / "reinforce.json"
    with lock_outputs(config):
        prepare(args.folder, args.model)
        settings = load_settings(config, args.config, wrong_value)
        loop = Loop(args.folder, settings, device, args.backend, args.gpu, end)
        loop.run(args.cycles or math.inf)
    print(f"{args.folder}: table.md, progress.png, index.html and the network best")
    return 0
