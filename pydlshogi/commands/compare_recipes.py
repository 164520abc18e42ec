"""The program compare_recipes: trains networks by several recipes and compares the results."""

from __future__ import annotations

import argparse
import dataclasses
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydlshogi.commands.arguments import (
    OptionalFile,
    add_number,
    file_name,
    named_path,
    positive_int,
    seed_number,
)
from pydlshogi.commands.model_options import apply_computation
from pydlshogi.commands.program import program
from pydlshogi.commands.train_options import (
    TrainParser,
    add_network,
    add_recipe,
    chosen_network,
    chosen_sizes,
    settings_of,
)
from pydlshogi.commands.written import load_games
from pydlshogi.errors import UserError
from pydlshogi.files import plain_file
from pydlshogi.network.registry import SIZES
from pydlshogi.text import counted, decode, split_words
from pydlshogi.training.recipe import Options, Recipe

if TYPE_CHECKING:
    import numpy

    from pydlshogi.training.compare import Variant


_CONTINUE = "The same command continues the comparison."

# Options that a line of the file of recipes may set, beside those of a recipe.
_OF_A_LINE = {"network", *SIZES, "batchsize"}


class RecipesError(UserError):
    """The file of recipes cannot be used."""


class Line(NamedTuple):
    """A line of the file of recipes: its name, its words, and these with the command line's."""

    name: str
    words: str
    args: argparse.Namespace


def build_parser(add_help: bool = True) -> TrainParser:
    """Makes the parser of the command line.

    Without ``--help``, it parses each line of the file of recipes behind the command line.
    """
    parser = TrainParser(
        add_help=add_help,
        prog="compare_recipes",
        description="Trains networks by several recipes on the same positions in the same "
        "order, and tests them on other games. Writes a table (table.md, table.tsv) and the "
        "curves (curves.png). If it is interrupted, the same command continues.",
    )
    add = parser.add_argument
    add(
        "kifulist_train",
        type=file_name,
        help="text file with the paths of the training games, or of folders or archives, "
        "one a line",
    )
    add(
        "recipes",
        type=file_name,
        help="text file with one recipe a line: a name, then options (--network, --channels, "
        "--blocks, --batchsize, --lr and the refinements below); the options of the command line "
        "hold for all recipes",
    )
    add_network(parser)
    test = parser.add_mutually_exclusive_group()
    add_number(
        test,
        "--held_out",
        positive_int,
        "test on the last N games of the training list, which are not trained on "
        "(default: 200, but at most a fifth of the games)",
    )
    test.add_argument(
        "--kifulist_test",
        action=OptionalFile,
        default="",
        metavar="FILE",
        help="test on the games of this list instead",
    )
    text = "train on the first N positions (default: all)"
    add_number(parser, "--positions", positive_int, text)
    text = "test on the first N test positions (default: all)"
    add_number(parser, "--test_positions", positive_int, text)
    add(
        "--epoch",
        "-e",
        type=positive_int,
        default=1,
        metavar="N",
        help="epochs of each recipe (default: %(default)s)",
    )
    add(
        "--output",
        "-o",
        type=named_path,
        default=Path("recipes"),
        metavar="FOLDER",
        help="folder of all results (default: %(default)s)",
    )
    add_recipe(parser, eval_interval=100)
    text = "determines the first weights and the order of the positions"
    add_number(parser, "--seed", seed_number, text, 0)
    return parser


@program(
    "compare_recipes",
    remedy="Lower --batchsize or --test_batchsize, or end other programs.",
    interrupted=_CONTINUE,
)
def main(argv: Sequence[str] | None = None) -> int:
    """Compares recipes as the command line says; returns the exit status."""
    words = sys.argv[1:] if argv is None else list(argv)
    parser = build_parser()
    parser.checks_combinations = False  # each recipe adds options; then they are checked
    args = parser.parse_args(words)
    lines = read_recipes(args, words)
    # These modules import Chainer; a wrong command line has been reported before.
    from pydlshogi.device import in_words, select_device
    from pydlshogi.lock import lock_outputs
    from pydlshogi.outputs import prepare_outputs
    from pydlshogi.positions import count_common
    from pydlshogi.training.compare import Comparison, compare
    from pydlshogi.training.run import load_start

    device = select_device(args.gpu)
    apply_computation(args)
    output: Path = args.output
    variants = [_variant(line, output) for line in lines]
    for variant in variants:  # before anything is read
        load_start(variant.options)
    prepare_outputs({"--output": str(output / "table.md")}, {})
    train_set, test_set, tested_on = _read_positions(args)
    options = [f"- {line.name}: {f'`{line.words}`' if line.words else '-'}" for line in lines]
    caption = "\n".join(options) + (
        f"\n\n{counted(len(train_set), 'training position')}, {counted(args.epoch, 'epoch')}, "
        f"tested on {counted(len(test_set), 'position')} of {tested_on}, seed {args.seed}, "
        f"on the {in_words(device)}. Training positions that are also in the test set: "
        f"{count_common(train_set, test_set)}."
    )
    comparison = Comparison(variants, output, train_set, test_set, device, caption)
    with lock_outputs(output / "table.md"):
        signal_number = compare(comparison)
    if signal_number:
        print(f"compare_recipes: interrupted. {_CONTINUE}", file=sys.stderr)
        return 128 + signal_number
    print(f"{output}: table.md, table.tsv, curves.png and a folder for each recipe")
    return 0


def _variant(line: Line, output: Path) -> Variant:
    from pydlshogi.training.compare import Variant

    line.args.network = chosen_network(line.args)
    folder = output / line.name
    settings = settings_of(line.args, str(folder / "model"), str(folder / "state"))
    options = Options("", "", settings, line.args.network, chosen_sizes(line.args))
    return Variant(line.name, line.words, options)


def _read_positions(args: argparse.Namespace) -> tuple[numpy.ndarray, numpy.ndarray, str]:
    """Reads the training and the test positions, and says in words where the latter come from."""
    from pydlshogi.training.compare import first, game_starts, hold_out

    positions, source = load_games(args.kifulist_train).positions, args.kifulist_train
    if args.kifulist_test:
        test_set, tested_on = load_games(args.kifulist_test).positions, args.kifulist_test
        test_source = args.kifulist_test
    else:
        positions, test_set = hold_out(positions, args.held_out)
        tested_on = f"{counted(len(game_starts(test_set)), 'game')} held out of the training list"
        source, test_source = f"{source} without the games held out", "the games held out"
    return (
        first(positions, args.positions, source),
        first(test_set, args.test_positions, test_source),
        tested_on,
    )


def read_recipes(args: argparse.Namespace, words: Sequence[str]) -> list[Line]:
    """Reads the file of recipes, which follow the words of the command line.

    Raises:
        RecipesError: the file cannot be read or has no recipe; two names are equal except
            for upper and lower case; a name is not allowed; or an option is not a recipe's.
        SystemExit: with status 2: an option is unknown or has a wrong value.
    """
    lines: list[Line] = []
    # Behind "--", options would be file names.
    end = words.index("--") if "--" in words else len(words)
    for place, name, options in _split_lines(args.recipes):
        _check_name(place, name, lines)
        parser = build_parser(add_help=False)
        parser.prog = f"compare_recipes: {place}"
        parsed = parser.parse_args([*words[:end], *options, *words[end:]])
        _check_options(place, args, parsed)
        lines.append(Line(name, shlex.join(options), parsed))
    if not lines:
        raise RecipesError(f"{args.recipes} has no recipe. Write one a line: NAME OPTIONS.")
    return lines


def _split_lines(path: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yields the place, the name and the options of each recipe; ``#`` starts a comment."""
    try:
        lines = decode(plain_file(path, pipe=True).read_bytes()).splitlines()
    except OSError as error:
        raise RecipesError(f"{path} cannot be read ({error.strerror}). Check its path.") from None
    for number, line in enumerate(lines, 1):
        place = f"{path}, line {number}"
        try:
            name, *options = split_words(line, comments="#") or [""]
        except ValueError as error:
            raise RecipesError(f"{place} cannot be read ({error}). Close the quotes.") from None
        if name:
            yield place, name, options


def _check_name(place: str, name: str, earlier: Sequence[Line]) -> None:
    """Checks that a name can be the name of a folder of its own."""
    # Windows and macOS do not distinguish upper and lower case in names of folders.
    if name.lower() in {line.name.lower() for line in earlier}:
        raise RecipesError(
            f"{place}: an earlier recipe has the name {name!r}, in upper or lower case. "
            "Choose another name."
        )
    if not re.fullmatch(r"[A-Za-z_][\w-]*", name, re.ASCII):
        raise RecipesError(
            f"{place}: {name!r} cannot be the name of a recipe. "
            "Use letters (a to z, A to Z), digits, - and _; start with a letter or _."
        )


def _check_options(place: str, args: argparse.Namespace, parsed: argparse.Namespace) -> None:
    """Checks that a line changes only options that may differ between recipes."""
    changeable = _OF_A_LINE | {field.name for field in dataclasses.fields(Recipe)}
    for option, value in vars(parsed).items():
        if option not in changeable and value != getattr(args, option):
            raise RecipesError(
                f"{place}: --{option} must be the same for all recipes. "
                "Give it on the command line."
            )
