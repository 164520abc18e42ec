"""What a training is asked to do. Each option is declared once, as a field of a dataclass.

The metadata of a field is what the command line needs: its help; its range, which is the name of
a function or an action of :mod:`pydlshogi.commands.arguments` or a tuple of choices; its group.
This module imports nothing heavy, so that ``--help`` and a wrong option answer at once.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

#: Scale fitted to the floodgate games of 2016 by the program fit_eval_scale.
EVAL_SCALE = 326.0

#: The targets of the policy (:mod:`pydlshogi.training.targets`).
PLAYED, VISITS = "played", "visits"

#: Groups of options: those beyond the published recipe, and others that compare_recipes lacks.
REFINEMENTS, TARGETS = "refinements", "targets"
LENGTH, START, SEED, RECORDS = "length", "start", "seed", "records"


def _option(
    default: Any,
    help: str,
    range: str | tuple[str, ...] = "",
    metavar: str = "N",
    *,
    group: str = REFINEMENTS,
    short: str = "",
) -> Any:
    """Declares an option; a flag has no range."""
    metadata = {"help": help, "range": range, "metavar": metavar, "group": group, "short": short}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a network is trained. The defaults are the published recipe: plain SGD."""

    dirac: bool = _option(
        False,
        "initialize near the identity: 3x3 layers with as many planes out as in, and "
        "residual blocks",
    )
    lr: float = _option(
        0.01,
        "learning rate; the highest one if it changes (default: %(default)s)",
        "non_negative_number",
        "RATE",
        group="",
    )
    momentum: float = _option(0.0, "momentum, for example 0.9 (default: none)", "share", "SHARE")
    # With v <- mv - lr g, Chainer moves the weights by m^2 v - (1 + m) lr g, where Nesterov's
    # method (arXiv:1212.0901) takes the previous v. A gradient then counts 1 + m + m^2 times the
    # rate at once, and in total lr / (1 - m), as with plain momentum. See Chainer's issue 4274.
    nesterov: bool = _option(False, "momentum as in Chainer's NesterovAG")
    weight_decay: float = _option(
        0.0,
        "weight decay, for example 1e-4; not for biases and batch normalization (default: none)",
        "non_negative_number",
        "RATE",
    )
    clip: float | None = _option(
        None,
        "largest norm of the gradient; larger gradients are scaled down (default: no limit)",
        "positive_number",
        "NORM",
    )
    lr_schedule: str = _option(
        "constant",
        "learning rate: constant, falling to 0 along half a cosine, or in steps "
        "(default: %(default)s)",
        ("constant", "cosine", "steps"),
    )
    lr_iterations: int | None = _option(
        None,
        "with cosine: iteration at which the rate is 0, counted over all runs (default: "
        "the planned end of the first run)",
        "positive_int",
    )
    lr_steps: tuple[int, ...] = _option(
        (),
        "with steps: iterations at which the rate is multiplied by --lr_factor",
        "positive_ints",
        "N,N,...",
    )
    lr_factor: float = _option(
        0.1, "factor of --lr_steps, 0 to 1 (default: 0.1)", "proportion", "FACTOR"
    )
    warmup: int = _option(
        0,
        "number of first iterations in which the rate rises from near 0 (default: 0)",
        "non_negative_int",
    )
    mirror: bool = _option(
        False,
        "exchange left and right in half of the positions, drawn anew every epoch; useful "
        "if the run sees the same games several times",
    )
    value_lambda: float = _option(
        1.0,
        "target of the value head: X * result + (1 - X) * sigmoid(evaluation / eval_scale); "
        "a position without an evaluation uses the result (default: 1, the result alone)",
        "proportion",
        "X",
    )
    eval_scale: float = _option(
        EVAL_SCALE,
        "scale of the evaluations, as fit_eval_scale finds it; needs --value_lambda "
        f"below 1 (default: {EVAL_SCALE:g})",
        "positive_number",
        "CENTIPAWNS",
    )
    td_lambda: float = _option(
        0.0,
        "use the lambda-return of the game's later evaluations and its result in place of the "
        "position's own evaluation, for example 0.9; needs --value_lambda below 1 (default: 0, "
        "its own evaluation alone)",
        "share",
        "L",
    )
    policy_target: str = _option(
        PLAYED,
        "target of the policy head: the move played, or the shares of the moves in the visits "
        "of an HCPE3 file; a position without visits uses the move played "
        "(default: %(default)s)",
        (PLAYED, VISITS),
        group=TARGETS,
    )
    value_head_only: bool = _option(
        False,
        "train the value head of --initmodel alone; the other layers and the policy stay the same",
        group=TARGETS,
    )

    @property
    def changes_rate(self) -> bool:
        """Whether the learning rate changes during training."""
        return self.lr_schedule != "constant" or self.warmup > 0

    def changes(self) -> dict[str, Any]:
        """Returns the options that differ from the published recipe, by name."""
        values = dataclasses.asdict(self)
        return {
            field.name: values[field.name]
            for field in dataclasses.fields(self)
            if values[field.name] != field.default
        }


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a run has to do: the options of the training programs with the same names.

    The folders of ``model`` and ``state`` exist. The seed (0..2**32-1) determines the order of the
    training positions and the draws of test positions; a resumed run keeps its own.
    """

    model: str | os.PathLike[str]
    state: str | os.PathLike[str]
    seed: int = 0
    batchsize: int = _option(
        32,
        "positions in a training batch (default: %(default)s)",
        "positive_int",
        group="",
        short="-b",
    )
    test_batchsize: int = _option(
        512,
        "number of random test positions at each evaluation; also the batch size of the "
        "validation (default: %(default)s)",
        "positive_int",
        group="",
    )
    epoch: int = _option(
        10,
        "epochs of this run, including the interrupted epoch of a resumed run "
        "(default: %(default)s)",
        "positive_int",
        group=LENGTH,
        short="-e",
    )
    iterations: int | None = _option(
        None,
        "stop after N iterations of this run if --epoch is not reached earlier; then validate "
        "and save as at the end of an epoch",
        "positive_int",
        group=LENGTH,
    )
    eval_interval: int = _option(
        1000,
        "evaluate, log and save every N iterations (default: %(default)s)",
        "positive_int",
        group="",
        short="-i",
    )
    recipe: Recipe = Recipe()

    @property
    def options(self) -> dict[str, Any]:
        """Recipe and batch size by name: what a resumed run should not change."""
        return {**dataclasses.asdict(self.recipe), "batchsize": self.batchsize}


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of a training program, under the same names.

    Attributes:
        sizes: Sizes of the network by name (``registry.sizes_of``). Missing ones are those of
            ``initmodel``, or the network's defaults.
        gpu: Number of the GPU, negative for the CPU; None for a GPU if there is one.
    """

    kifulist_train: str
    kifulist_test: str
    settings: Settings
    network: str
    sizes: Mapping[str, int] = dataclasses.field(default_factory=dict)
    initmodel: str = _option(
        "",
        "model file to start from; must be of the same --network",
        "OptionalFile",
        "FILE",
        group=START,
        short="-m",
    )
    resume: str = _option(
        "",
        "state file of a run to continue; also needs the model of that run as --initmodel",
        "OptionalFile",
        "FILE",
        group=START,
        short="-r",
    )
    gpu: int | None = None
    seed: int | None = _option(
        None,
        "determines the first weights and the order of the positions; on a CPU, two runs with the "
        "same seed and number of threads give the same model (default: a random number)",
        "seed_number",
        group=SEED,
    )
    strict: bool = _option(
        False,
        "leave out games with illegal moves, such as a king left in check (slower)",
        group=RECORDS,
    )
    drop_duplicates: bool = _option(
        False,
        "leave out games with the same start and moves as an earlier game",
        group=RECORDS,
    )
    report: str = _option(
        "",
        "file that receives a table (TSV) of the records left out, with reasons",
        "OptionalFile",
        "FILE",
        group=RECORDS,
    )

    def with_seed(self) -> Options:
        """Returns the same options with a seed in the settings: the given or a random one."""
        seed = int.from_bytes(os.urandom(4), "little") if self.seed is None else self.seed
        return dataclasses.replace(self, settings=dataclasses.replace(self.settings, seed=seed))
