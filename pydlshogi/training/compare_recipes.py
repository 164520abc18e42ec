"""The program compare_recipes: one network trained by several recipes, and what came of it.

Recipes are chosen by games that are held out of the training list, so that the test games
have no part in the choice. Everything else is as in :mod:`.compare`.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydlshogi.commands.train_options import build_recipes_parser
from pydlshogi.text import decode
from pydlshogi.training.compare import (
    SETTINGS,
    CompareError,
    call,
    check_settings,
    epochs,
    first,
    prepare,
    read_positions,
    train_all,
)

if TYPE_CHECKING:
    import numpy


def main(argv: Sequence[str] | None = None) -> int:
    """Compares recipes as the command line says.

    Args:
        argv: The arguments; those of the process where it is None.

    Returns:
        Exit status, as :func:`pydlshogi.training.compare.call`.

    Raises:
        SystemExit: status 2, by argparse: a value or an option that does not exist, on the
            command line or in a recipe.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    args = build_recipes_parser().parse_args(words)
    return call("compare_recipes", lambda: compare_recipes(args, words))


def compare_recipes(args: argparse.Namespace, words: Sequence[str]) -> int | None:
    """Trains what is missing, and writes table and curves after each recipe.

    Args:
        args: What ``build_recipes_parser`` parsed.
        words: What it parsed it from.

    Returns:
        None when all is done, else the number of the signal that interrupted it.

    Raises:
        Exception: ``CompareError`` or one of ``training.run.ERRORS``.
    """
    from pydlshogi.device import in_words

    recipes = read_recipes(args, words)
    variants = {name: options for name, (_, options) in recipes.items()}
    device = prepare(args, variants)
    others, held_out = hold_out(read_positions(args.kifulist_train), args.held_out)
    train_set = first(others, args.positions, f"{args.kifulist_train} without the games held out")
    output = Path(args.output)
    for name, options in variants.items():
        (output / name).mkdir(exist_ok=True)
        path = output / name / "settings.json"
        check_settings(path, options, ("network", *SETTINGS), train_set, held_out)
    lines = [f"- {name}: {f'`{text}`' if text else '-'}" for name, (text, _) in recipes.items()]
    caption = "\n".join(lines) + (
        f"\n\n{len(train_set)} training positions, {epochs(args.epoch)}, tested on "
        f"{len(held_out)} positions of {args.held_out} games held out of the training list, "
        f"seed {args.seed}, on the {in_words(device)}."
    )
    return train_all("recipe", variants, output, train_set, held_out, device, caption)


def read_recipes(
    args: argparse.Namespace, words: Sequence[str]
) -> dict[str, tuple[str, argparse.Namespace]]:
    """Reads the file of recipes.

    Args:
        args: The options of the command line.
        words: What they were parsed from; a recipe's options come behind them.

    Returns:
        Of each recipe by its name: the options as they are written, and parsed together
        with those of the command line.

    Raises:
        CompareError: the file cannot be read, or has no recipe, two of one name, be it in
            other letter case, a name that is none, or an option that is not a recipe's.
        SystemExit: status 2, by argparse, with the line's number.
    """
    from pydlshogi.training.recipe import Recipe

    changeable = {"network", "batchsize", *vars(Recipe())}
    recipes: dict[str, tuple[str, argparse.Namespace]] = {}
    folders = set()
    try:
        lines = decode(Path(args.recipes).read_bytes()).splitlines()
    except OSError as error:
        raise CompareError(f"{args.recipes} cannot be read ({error}). Check its path.") from None
    for number, line in enumerate(lines, 1):
        place = f"{args.recipes}, line {number}"
        try:
            name, *options = shlex.split(line, comments=True) or [""]
        except ValueError as error:
            raise CompareError(f"{place} cannot be read ({error}). Close the quotes.") from None
        if not name:
            continue
        # Windows and Mac take names in other letter case for one folder.
        folder = name.lower()
        if folder in folders:
            raise CompareError(
                f"{place}: a recipe above has the name {name!r}, capital letters or not. "
                "Give this one another name."
            )
        if not re.fullmatch(r"[A-Za-z_][\w-]*", name, re.ASCII):
            raise CompareError(
                f"{place}: {name!r} cannot be a recipe's name. "
                "Begin the line with a name of letters (a to z, A to Z), digits, - and _, "
                "a letter or _ first."
            )
        folders.add(folder)
        parser = build_recipes_parser()
        parser.prog = f"compare_recipes: {place}"
        parsed = parser.parse_args([*words, *options])
        for option, value in vars(parsed).items():
            if option not in changeable and value != getattr(args, option):
                raise CompareError(
                    f"{place}: --{option} is the same for all recipes. Give it on the command line."
                )
        recipes[name] = shlex.join(options), parsed
    if not recipes:
        raise CompareError(f"{args.recipes} has no recipe. Write one a line: NAME OPTIONS.")
    return recipes


def hold_out(positions: numpy.ndarray, games: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Parts the last games of a list from the others.

    Args:
        positions: (n,) array of ``POSITION``, game by game.
        games: How many.

    Returns:
        The positions of the other games, and those of the last ones.

    Raises:
        CompareError: there are not more games than that.
    """
    import numpy

    ply = positions["ply"].astype(numpy.int64)
    starts = numpy.flatnonzero(numpy.diff(ply, prepend=-1) != 1)
    if games >= len(starts):
        raise CompareError(
            f"--held_out {games} leaves nothing of the {len(starts)} games to train on. "
            "Hold fewer out."
        )
    return positions[: starts[-games]], positions[starts[-games] :]


if __name__ == "__main__":
    sys.exit(main())
