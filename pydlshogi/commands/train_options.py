"""The options of the training programs and of compare_recipes.

This module imports nothing heavy, so that ``--help`` and a wrong option answer at once.
"""

from __future__ import annotations

import argparse
import dataclasses
from functools import partial
from typing import Any, NamedTuple, TypeVar

from pydlshogi.commands import arguments
from pydlshogi.commands.arguments import (
    ArgumentParser,
    OptionalFile,
    file_name,
    positive_int,
    whole_number,
)
from pydlshogi.commands.model_options import add_computation
from pydlshogi.errors import UserError
from pydlshogi.network.own import FORM, is_spec
from pydlshogi.network.registry import DEFAULT, MOST_CHANNELS, NETWORKS, SIZES, sizes_of
from pydlshogi.training.recipe import (
    LENGTH,
    RECORDS,
    REFINEMENTS,
    SEED,
    START,
    TARGETS,
    VISITS,
    Options,
    Recipe,
    Settings,
)

#: Communicators of ChainerMN; all but the first are for GPUs.
COMMUNICATORS = (
    "naive",
    "pure_nccl",
    "flat",
    "hierarchical",
    "non_cuda_aware",
    "single_node",
    "two_dimensional",
)

_Kind = TypeVar("_Kind", Options, Recipe, Settings)

#: Options that need another one, so that their default says only that they are missing.
_NEEDING = ("lr_factor", "eval_scale")

_RESNET = "policy_value_resnet"


class TrainProgram(NamedTuple):
    """One of the names of the training program: its default network, and what it trains.

    The network also names its files ``model/model_NETWORK`` and ``model/state_NETWORK``.
    """

    name: str
    network: str
    trains: str


TRAIN_PROGRAMS = {
    program.name: program
    for program in (
        TrainProgram("train_policy", "policy", "the book's policy network"),
        TrainProgram("train_value", "value", "the book's value network"),
        TrainProgram(
            "train_policy_value", "policy_value", "the book's network with a policy and a value"
        ),
        TrainProgram(
            "train_policy_value_resnet", _RESNET, "the book's residual network with both heads"
        ),
    )
}


class TrainParser(ArgumentParser):
    """Parser that also refuses options that have no effect without another one."""

    #: Whether it does so; False while it parses a part of the options.
    checks_combinations = True

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """Parses as argparse does, then checks the options against each other."""
        options, rest = super().parse_known_args(*args, **kwargs)
        for wrong, sentence in _contradictions(options):
            if wrong and self.checks_combinations:
                self.error(sentence)
        for name in _NEEDING:
            if getattr(options, name) is None:
                setattr(options, name, getattr(Recipe(), name))
        return options, rest


def _of_recipe(options: Any) -> list[tuple[bool, str]]:
    """Lists the rules within a recipe: whether each is broken, and the sentence for it."""
    steps = options.lr_schedule == "steps"
    return [
        (options.nesterov and not options.momentum, "--nesterov needs --momentum"),
        (bool(options.lr_steps) and not steps, "--lr_steps needs --lr_schedule steps"),
        (steps and not options.lr_steps, "--lr_schedule steps needs --lr_steps"),
    ]


def _contradictions(options: argparse.Namespace) -> list[tuple[bool, str]]:
    """Lists the rules between options, as :func:`_of_recipe`."""
    cosine = options.lr_schedule == "cosine"
    initmodel, resume = getattr(options, "initmodel", ""), getattr(options, "resume", "")
    value_head_only = getattr(options, "value_head_only", False)
    return [
        *_of_recipe(options),
        (options.lr_factor is not None and not options.lr_steps, "--lr_factor needs --lr_steps"),
        (
            options.lr_iterations is not None and not cosine,
            "--lr_iterations needs --lr_schedule cosine",
        ),
        (
            options.dirac and bool(initmodel) and not resume,
            "--dirac changes the first weights, but --initmodel gives other weights; "
            "leave one of them out",
        ),
        (
            bool(resume) and not initmodel,
            "--resume needs the model of that run; give it as --initmodel",
        ),
        *(_wrong_size(options.network, size) for size in chosen_sizes(options)),
        *_missing_heads(options, *_heads_by_name(options.network)),
        (
            options.eval_scale is not None and options.value_lambda == 1,
            "--eval_scale needs --value_lambda below 1",
        ),
        (
            options.td_lambda > 0 and options.value_lambda == 1,
            "--td_lambda needs --value_lambda below 1",
        ),
        (
            value_head_only and not initmodel,
            "--value_head_only leaves the other layers as they are; give their model as "
            "--initmodel",
        ),
        (
            value_head_only and options.policy_target == "visits",
            "--policy_target has no effect with --value_head_only; leave one of them out",
        ),
    ]


def _heads_by_name(network: str) -> tuple[bool, bool]:
    """Says whether a network has a policy and a value; both, of a file that is not read yet."""
    return is_spec(network) or network != "value", is_spec(network) or "value" in network


def _missing_heads(
    options: argparse.Namespace, has_policy: bool, has_value: bool
) -> list[tuple[bool, str]]:
    """Lists the options for a head: whether the network lacks it, and the sentence for it."""
    recipe = recipe_of(options)
    return [
        (
            is_given and not has_head,
            f"--{name} is for a network with a {head} head, and {options.network} has none",
        )
        for name, is_given, head, has_head in (
            ("value_lambda", recipe.value_lambda < 1, "value", has_value),
            ("value_head_only", recipe.value_head_only, "value", has_value),
            ("policy_target", recipe.policy_target == VISITS, "policy", has_policy),
        )
    ]


def _wrong_size(network: str, size: str) -> tuple[bool, str]:
    """Checks that a network has a size. The sizes of a file of the user are not known yet."""
    having = ", ".join(name for name in NETWORKS if size in sizes_of(name))
    wrong = not is_spec(network) and size not in sizes_of(network)
    return wrong, f"--{size} is for the networks {having}"


def chosen_sizes(options: argparse.Namespace) -> dict[str, int]:
    """Returns the sizes of the network that the command line gives, by name."""
    values = {size: getattr(options, size) for size in SIZES}
    return {size: value for size, value in values.items() if value is not None}


def build_parser(program: TrainProgram = TRAIN_PROGRAMS["train_policy"]) -> TrainParser:
    """Makes the parser of a training program."""
    parser = TrainParser(
        prog=program.name,
        description="Trains a shogi network on game records (CSA, KIF, KI2) and position files "
        f"(HCPE, HCPE3, PSV); by default {program.trains}.",
    )
    add_lists(parser)
    add_network(parser, program.network)
    add_fields(parser, Settings, LENGTH)
    _add_files(parser, program.network)
    add_recipe(parser, eval_interval=1000)
    add_fields(parser, Options, SEED)
    add_fields(parser, Recipe, TARGETS)
    add_fields(parser, Options, RECORDS)
    parser.add_argument(
        "--communicator",
        choices=COMMUNICATORS,
        metavar="NAME",
        help="with mpiexec: ChainerMN's communicator between the processes, one of "
        f"{', '.join(COMMUNICATORS)} (default: pure_nccl on GPUs, naive on CPUs)",
    )
    return parser


def options_of(args: argparse.Namespace) -> Options:
    """Makes the options of a run from what :func:`build_parser` parsed."""
    settings = settings_of(args, args.model, args.state)
    return _made_of(Options, args, settings=settings, sizes=chosen_sizes(args))


def settings_of(args: argparse.Namespace, model: str, state: str) -> Settings:
    """Makes the settings of a run from parsed options and its two files."""
    given = {"model": model, "state": state, "seed": args.seed or 0, "recipe": recipe_of(args)}
    return _made_of(Settings, args, **given)


def recipe_of(args: argparse.Namespace) -> Recipe:
    """Makes the recipe from parsed options."""
    return _made_of(Recipe, args)


def _made_of(kind: type[_Kind], args: argparse.Namespace, **given: Any) -> _Kind:
    """Makes a dataclass of given values and of the parsed options with the names of its fields.

    compare_recipes lacks some options; then the default holds.
    """
    names = {field.name for field in dataclasses.fields(kind)} - given.keys()
    return kind(**{name: getattr(args, name) for name in names if name in args}, **given)


def add_recipe(parser: argparse.ArgumentParser, *, eval_interval: int) -> None:
    """Adds the options that say how a network is trained and computed."""
    add_fields(parser, Settings)
    parser.set_defaults(eval_interval=eval_interval)
    add_fields(parser, Recipe)
    group = parser.add_argument_group(
        REFINEMENTS, "beyond the published recipe; a resumed run needs the same again"
    )
    add_fields(group, Recipe, REFINEMENTS)
    add_computation(parser)


def add_fields(parser: Any, of: type[Any], group: str = "") -> None:
    """Adds the options that the fields of a dataclass declare in a group."""
    for field in dataclasses.fields(of):
        if field.metadata.get("group") != group:
            continue
        range_, options = field.metadata["range"], {"help": field.metadata["help"]}
        if not range_:
            options["action"] = "store_true"
        else:
            options["default"] = None if field.name in _NEEDING else field.default
            options["metavar"] = field.metadata["metavar"]
        if isinstance(range_, tuple):
            options.update(choices=range_, metavar=None)
        elif range_:
            reader = getattr(arguments, range_)
            options["action" if isinstance(reader, type) else "type"] = reader
        names = filter(None, (f"--{field.name}", field.metadata["short"]))
        parser.add_argument(*names, **options)


def wrong_value(settings: Any) -> str:
    """Says which value of a dataclass its option would refuse, and why; empty if there is none."""
    for field in dataclasses.fields(settings):
        value, range_ = getattr(settings, field.name), field.metadata.get("range")
        if dataclasses.is_dataclass(value) and (sentence := wrong_value(value)):
            return sentence
        if isinstance(range_, tuple) and value not in range_:
            return f"{field.name} is {value!r}; choose from {', '.join(range_)}."
        if not isinstance(range_, str) or not range_ or value == field.default:
            continue
        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        try:
            is_right = getattr(arguments, range_)(text) == value
        except argparse.ArgumentTypeError as error:
            return f"{field.name}: {error}."
        if not is_right:
            return f"{field.name}: {value!r} is of another kind."
    if isinstance(settings, Recipe):
        broken = (sentence for wrong, sentence in _of_recipe(settings) if wrong)
        return next((f"{sentence.replace('--', '')}." for sentence in broken), "")
    return ""


def add_lists(parser: argparse.ArgumentParser) -> None:
    """Adds the two kifu lists."""
    text = "text file with the paths of the {} games, or of folders or archives, one a line"
    parser.add_argument("kifulist_train", type=file_name, help=text.format("training"))
    parser.add_argument("kifulist_test", type=file_name, help=text.format("test"))


def _network(text: str) -> str:
    """Reads the name of a network, or of a file with one."""
    if text not in NETWORKS and not is_spec(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no network; choose from {', '.join(NETWORKS)} or name {FORM}"
        )
    return text


def chosen_network(args: argparse.Namespace) -> str:
    """Returns the name of the network of parsed options; a file of the user is run first.

    Raises:
        UserError: the file cannot be used, or its network lacks the head of an option.
    """
    # Chainer is imported only now: a wrong command line has been reported before.
    from pydlshogi.network import own
    from pydlshogi.network.registry import network_class

    if not own.is_spec(args.network):
        return args.network
    name = own.use(args.network)
    network = network_class(name)
    for is_missing, sentence in _missing_heads(
        args, network.has_policy, network.value_kind is not None
    ):
        if is_missing:
            raise UserError(f"{sentence}. Leave it out.")
    return name


def add_network(parser: argparse.ArgumentParser, default: str = DEFAULT) -> None:
    """Adds the choice of the network."""
    parser.add_argument(
        "--network",
        type=_network,
        default=default,
        metavar="NAME",
        help=f"network to train: {', '.join(NETWORKS)}; or {FORM}, a class in a file of your own "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--channels",
        type=partial(whole_number, least=1, most=MOST_CHANNELS),
        metavar="N",
        help="number of filters of each hidden layer (default: that of --initmodel, or 192 as in "
        "the book)",
    )
    parser.add_argument(
        "--blocks",
        type=positive_int,
        metavar="N",
        help="for residual networks: number of residual blocks plus 1 (default: that of "
        "--initmodel, or 5 as in the book)",
    )


def _add_files(parser: argparse.ArgumentParser, network: str) -> None:
    add = parser.add_argument
    add(
        "--model",
        type=file_name,
        default=f"model/model_{network}",
        metavar="FILE",
        help="file that receives the network (default: %(default)s)",
    )
    add(
        "--state",
        type=file_name,
        default=f"model/state_{network}",
        metavar="FILE",
        help="file that receives the optimizer and the progress (default: %(default)s)",
    )
    add_fields(parser, Options, START)
    add(
        "--log",
        action=OptionalFile,
        default="",
        metavar="FILE",
        help="file that the log is appended to (default: standard error)",
    )
