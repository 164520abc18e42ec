"""The program self_play: plays games of a network against itself, as training data."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydlshogi.commands.arguments import (
    ArgumentParser,
    OptionalFile,
    file_name,
    named_path,
    non_negative_int,
    positive_int,
    positive_number,
    proportion,
    seed_number,
)
from pydlshogi.commands.model_options import add_computation, apply_computation
from pydlshogi.commands.program import program
from pydlshogi.selfplay.settings import HANDICAPS, SelfPlaySettings

#: Games in flight on a CPU and on a GPU.
_BATCH_CPU, _BATCH_GPU = 64, 512

_HELP = {
    "visits": (positive_int, "N", "visits of a full search"),
    "considered": (positive_int, "N", "moves that a full search draws at the root"),
    "cheap_visits": (positive_int, "N", "visits of a cheap search, which gives no policy target"),
    "full_share": (proportion, "SHARE", "share of the moves with a full search"),
    "mate_plies": (non_negative_int, "N", "longest mate searched at each leaf"),
    "max_plies": (positive_int, "N", "a game of N moves is drawn"),
    "random_plies": (non_negative_int, "N", "largest number of random moves at the start"),
    "kifu_share": (proportion, "SHARE", "share of the games that begin so"),
    "kifu_plies": (positive_int, "N", "largest number of these moves"),
    "handicap_share": (proportion, "SHARE", "share of the games with a handicap"),
    "resign_below": (proportion, "P", "a side with a smaller probability of winning resigns"),
    "resign_moves": (non_negative_int, "N", "moves in a row for that; 0: nobody resigns"),
    "play_on_share": (proportion, "SHARE", "share of the games without resignation"),
    "c_visit": (positive_number, "X", "weight of the values at the root"),
    "c_scale": (positive_number, "X", "weight of the values at the root"),
}


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="self_play",
        description="Plays games of a two-headed network against itself and writes them to FOLDER "
        "as HCPE3 files. The same command goes on after an interruption. Several processes may "
        "play into one folder.",
    )
    add = parser.add_argument
    add("model", type=file_name, metavar="MODEL", help="model file with policy and value")
    add("folder", type=named_path, metavar="FOLDER", help="folder of the games")
    add(
        "--games",
        type=positive_int,
        default=1000,
        metavar="N",
        help="number of games that the folder is to have (default: %(default)s)",
    )
    add(
        "--seed",
        type=seed_number,
        default=0,
        metavar="N",
        help="with its number, determines the start and the noise of a game (default: %(default)s)",
    )
    add(
        "--batch",
        type=positive_int,
        metavar="N",
        help=f"games at once (default: {_BATCH_CPU}, on a GPU {_BATCH_GPU})",
    )
    add(
        "--games_a_file",
        type=positive_int,
        default=500,
        metavar="N",
        help="games in a file (default: %(default)s)",
    )
    add(
        "--backend",
        default="auto",
        metavar="NAME",
        help="what computes the network on a CPU, as the engine's option (default: %(default)s)",
    )
    for name, (kind, metavar, text) in _HELP.items():
        add(
            f"--{name}",
            type=kind,
            default=getattr(SelfPlaySettings, name),
            metavar=metavar,
            help=f"{text} (default: %(default)s)",
        )
    add(
        "--kifu_list",
        action=OptionalFile,
        default="",
        metavar="KIFULIST",
        help="games whose first moves begin some games (default: none)",
    )
    add(
        "--handicaps",
        type=_handicaps,
        default=tuple(HANDICAPS),
        metavar="NAME,...",
        help=f"the handicaps, of {','.join(HANDICAPS)} (default: all)",
    )
    add_computation(parser)
    return parser


def _handicaps(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in HANDICAPS:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {','.join(HANDICAPS)}")
    return names


@program("self_play", interrupted="The same command goes on; the games in flight are lost.")
def main(argv: Sequence[str] | None = None) -> int:
    """Plays the games that are missing, and prints the table; returns the exit status."""
    args = build_parser().parse_args(argv)
    fields = dataclasses.fields(SelfPlaySettings)
    settings = SelfPlaySettings(**{field.name: getattr(args, field.name) for field in fields})
    # These modules import Chainer; a wrong command line has been reported before.
    from pydlshogi.selfplay.folder import GameFolder
    from pydlshogi.selfplay.generate import Generator, summary

    model = load(args.model, args)
    batch = args.batch or default_batch(model)
    with GameFolder(args.folder, args.seed, args.games_a_file) as folder:
        Generator(model, folder, settings, args.seed, batch).run(args.games)
        rows = folder.rows()
    print(summary(rows), end="")
    print(f"{args.folder}: {len(rows)} games, and every 100th as a page in {Path('records')}")
    return 0


def load(path: str | os.PathLike[str], args: argparse.Namespace) -> Any:
    """Loads a model as the options of the computation and ``--backend`` say."""
    from pydlshogi.device import select_device
    from pydlshogi.errors import UserError
    from pydlshogi.inference.backend import BACKENDS
    from pydlshogi.selfplay.generate import Model

    if args.backend not in BACKENDS:
        raise UserError(f"{args.backend!r} is no backend. Choose one of {', '.join(BACKENDS)}.")
    device = select_device(args.gpu)
    apply_computation(args)
    return Model(path, device, args.backend)


def default_batch(model: Any) -> int:
    """Returns how many games to play at once on the device of a model."""
    import numpy

    return _BATCH_CPU if model.evaluator.device.xp is numpy else _BATCH_GPU
