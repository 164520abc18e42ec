"""The program self_play: plays games of a network against itself, as training data."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from pydlshogi.commands.arguments import (
    ArgumentParser,
    OptionalFile,
    add_number,
    file_name,
    named_path,
    positive_int,
    seed_number,
)
from pydlshogi.commands.model_options import add_computation, apply_computation
from pydlshogi.commands.program import program
from pydlshogi.commands.train_options import add_fields
from pydlshogi.player.engine_options import BACKENDS
from pydlshogi.selfplay.settings import HANDICAPS, SelfPlaySettings

#: Games in flight on a CPU and on a GPU.
_BATCH_CPU, _BATCH_GPU = 64, 512

#: Options that have no effect without another one.
_NEEDING = {"handicaps": "handicap_share", "kifu_share": "kifu_list", "kifu_plies": "kifu_list"}


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="self_play",
        description="Plays games of a two-headed network against itself and writes them to FOLDER "
        "as HCPE3 files. The same command goes on after an interruption. Several processes may "
        "play into one folder.",
    )
    add_network_and_folder(parser, "model file with policy and value", "folder of the games")
    add = parser.add_argument
    add_number(parser, "--games", positive_int, "games that the folder is to have", 1000)
    text = "with its number, determines the start and noise of a game"
    add_number(parser, "--seed", seed_number, text, 0)
    add_number(parser, "--games_a_file", positive_int, "games in a file", 500)
    text = f"games at once (default: {_BATCH_CPU}, on a GPU {_BATCH_GPU})"
    add_number(parser, "--batch", positive_int, text)
    add_fields(parser, SelfPlaySettings)
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
    return parser


def add_network_and_folder(parser: argparse.ArgumentParser, model: str, folder: str) -> None:
    """Adds MODEL and FOLDER, with their help, and the options of the computation."""
    parser.add_argument("model", type=file_name, metavar="MODEL", help=model)
    parser.add_argument("folder", type=named_path, metavar="FOLDER", help=folder)
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        default="auto",
        help="what computes the networks of the games on a CPU (default: %(default)s)",
    )
    add_computation(parser)


def _handicaps(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in HANDICAPS:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {','.join(HANDICAPS)}")
    return names


@program("self_play", interrupted="The same command goes on; the games in flight are lost.")
def main(argv: Sequence[str] | None = None) -> int:
    """Plays the games that are missing, and prints the table; returns the exit status."""
    parser = build_parser()
    args = parser.parse_args(argv)
    for name, needed in _NEEDING.items():
        if getattr(args, name) != parser.get_default(name) and not getattr(args, needed):
            parser.error(f"--{name} needs --{needed}")
    fields = dataclasses.fields(SelfPlaySettings)
    settings = SelfPlaySettings(**{field.name: getattr(args, field.name) for field in fields})
    # These modules import Chainer; a wrong command line has been reported before.
    import numpy

    from pydlshogi.selfplay.folder import GameFolder
    from pydlshogi.selfplay.generate import Generator, summary

    model = load(args.model, args)
    batch = _BATCH_CPU if model.evaluator.device.xp is numpy else _BATCH_GPU
    with GameFolder(args.folder, args.seed, args.games_a_file) as folder:
        Generator(model, folder, settings, args.seed, args.batch or batch).run(args.games)
        rows = folder.rows()
    print(summary(rows), end="")
    print(f"{args.folder}: {len(rows)} games; games 1, 101, 201 … are also pages in records/")
    return 0


def load(path: str | os.PathLike[str], args: argparse.Namespace) -> Any:
    """Loads a model as the options of the computation say."""
    from pydlshogi.device import select_device
    from pydlshogi.selfplay.generate import Model

    device = select_device(args.gpu)
    apply_computation(args)
    return Model(path, device, args.backend)
