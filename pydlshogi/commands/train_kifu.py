"""The program train_kifu: from a folder of records to a trained network and its curve."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydlshogi.commands.arguments import ArgumentParser, named_path
from pydlshogi.commands.program import program
from pydlshogi.errors import UserError
from pydlshogi.files import write_beside

#: The games that come with the repository, and their lists.
_SHIPPED = Path("kifu")

#: Notes in the folder of a run whose games it is trained on.
_SOURCE = "source.txt"

#: With fewer training games, an epoch is too short.
_MANY_GAMES = 180


class Preset(NamedTuple):
    """A training that needs no options.

    Attributes:
        shipped: Name of its run on the games of :data:`_SHIPPED`.
        added: What the name of its run has after the name of another folder.
        program: The training program.
        kind: The end of the names of its model and its state.
        options: Options of the training program, without ``--``.
    """

    shipped: str
    added: str
    program: str
    kind: str
    options: str


_SGD = (
    "--batchsize 64 --lr 0.03 --momentum 0.9 --nesterov --warmup 40 --lr_schedule cosine "
    "--eval_interval 50"
)

PRESETS = {
    # The recipe that learns fastest of those compared in model/HISTORY.md.
    "best": Preset(
        "train",
        "",
        "train_policy",
        "policy",
        f"--network policy_hand1x1_bn --dirac {_SGD} --weight_decay 1e-4",
    ),
    # The book's recipe is the default of train_policy.
    "book": Preset("book", "-book", "train_policy", "policy", "--eval_interval 100"),
    # Few games have few results, and a value learns them by heart. So it learns the evaluations in
    # the records, with mirrored positions and decay. Games without evaluations give their results.
    "value": Preset(
        "value",
        "-value",
        "train_policy_value",
        "policy_value",
        f"--network policy_value_hand1x1_resnet --channels 64 --blocks 4 --dirac {_SGD} "
        "--mirror --weight_decay 5e-3 --value_lambda 0",
    ),
}


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="train_kifu",
        description="Trains a network on the game records of a folder: makes the lists, trains "
        "one epoch (2 to 10 if there are at most 90 games) and draws the curve. The same "
        "command continues an interrupted training.",
    )
    add = parser.add_argument
    add(
        "folder",
        nargs="?",
        type=named_path,
        help="folder with records, as for make_kifu_list (default: the 200 games of a clone)",
    )
    add(
        "--recipe",
        choices=PRESETS,
        default="best",
        help="best: the policy network that learns fastest; book: the book's network and recipe; "
        "value: a small network with policy and value, for the search (default: %(default)s)",
    )
    add(
        "--output",
        type=named_path,
        metavar="FOLDER",
        help="folder of the results (default: run/ and the name of the folder of records, then "
        "-book or -value; for the 200 games run/train, run/book and run/value)",
    )
    add("--restart", action="store_true", help="start over; an earlier run gets another name")
    return parser


@program("train_kifu")
def main(argv: Sequence[str] | None = None) -> int:
    """Trains as the command line says; returns the exit status."""
    args = build_parser().parse_args(argv)
    preset = PRESETS[args.recipe]
    run: Path = args.output or Path("run", _name(args.folder, preset))
    if args.restart:
        _put_aside(run)
    model, state = run / f"model_{preset.kind}", run / f"state_{preset.kind}"
    finished, log, curve = run / "finished", run / "log.txt", run / "log.png"
    begun = finished.exists() or any(run.glob("state_*"))
    lists = _lists(args.folder, run, args.recipe, begun)
    if finished.exists():
        print(f"{run} is finished. To start over: add --restart (make retrain), or rename it.")
    else:
        words = [*lists, "--log", str(log), *preset.options.split()]
        status = _train(preset.program, words, str(model), str(state))
        if status:
            return status
        finished.touch()
    if not curve.exists():
        from pydlshogi.commands import plot_log

        status = plot_log.main([str(log), "--output", str(curve)])
        if status:
            return status
    print(f"Model: {model}. Log: {log}. Curve: {curve}.")
    print(f"In a GUI, set the engine's option modelfile to {model.resolve()}")
    print(f"To play against it: {subprocess.list2cmdline(_play(model))}")
    return 0


def _play(model: Path) -> list[str]:
    """Returns the command that opens the board with a model, also if no .venv is activated."""
    python = Path(sys.executable)
    if Path.cwd() in python.parents:
        python = python.relative_to(Path.cwd())
    return [str(python), "-m", "pydlshogi", "play", "--model", str(model)]


def _name(folder: Path | None, preset: Preset) -> str:
    """Names the run of a folder."""
    return preset.shipped if folder is None else (folder.resolve().name or "all") + preset.added


def _put_aside(run: Path) -> None:
    """Renames the folder of an earlier run, if there is one."""
    if run.exists():
        if run.resolve() in (Path.cwd(), *Path.cwd().parents):
            raise UserError(f"--output {run} is the current folder. Name a folder in it.")
        kept = run.with_name(f"{run.name}.{time.strftime('%Y%m%d-%H%M%S')}")
        run.rename(kept)
        print(f"The earlier run is now in the folder {kept}.")


def _train(program: str, words: Sequence[str], model: str, state: str) -> int:
    """Starts or continues a training with lists and options; returns its exit status."""
    epochs = _epochs(words[0])
    resume: list[str] = []
    if os.path.exists(state):
        resume = ["--initmodel", model, "--resume", state]
        epochs -= _finished_epochs(model, state)
        if epochs < 1:
            return 0
        print(f"Continuing the run in the folder {os.path.dirname(state)}.")
    words = [*words, "--model", model, "--state", state, "--epoch", str(epochs), *resume]
    print("python -m pydlshogi", program, subprocess.list2cmdline(words), flush=True)
    os.environ.setdefault("PYDLSHOGI_CONTINUE", "the same command")  # training.run names it
    train = importlib.import_module(f"pydlshogi.commands.{program}")
    status: int = train.main(words)
    return status


def _epochs(kifulist: str) -> int:
    """Chooses the number of epochs for a list of training games."""
    from pydlshogi.kifu.formats import is_binary

    names = Path(kifulist).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    if any(map(is_binary, names)):  # one such file holds many games
        return 1
    return max(1, min(10, _MANY_GAMES // len(names)))


def _finished_epochs(model: str, state: str) -> int:
    """Returns how many epochs an interrupted run has finished, with their validation."""
    from pydlshogi.training.checkpoint import finish_save
    from pydlshogi.training.state import load_state

    finish_save(model, state)
    place = load_state(state).place
    return place.validated_epochs if place else 0


def _lists(folder: Path | None, run: Path, recipe: str, begun: bool) -> list[str]:
    """Returns the lists of the training and the test games of a run, and makes its folder.

    ``folder`` has the records; None for the shipped ones. The lists of a run that has begun stay.
    """
    games, note = os.fsencode(folder.resolve() if folder else _SHIPPED), run / _SOURCE
    source = games + f", recipe {recipe}".encode()
    before = note.read_bytes() if note.exists() else b"games unknown"
    if begun and before not in (source, games):  # earlier versions did not name the recipe
        raise UserError(
            f"{run} holds another training ({os.fsdecode(before)}). "
            "Rename that folder, or name another one with --output."
        )
    lists = [(run if folder else _SHIPPED) / f"kifulist_{part}.txt" for part in ("train", "test")]
    if not folder and not lists[0].exists():
        raise UserError(f"There are no games in {_SHIPPED}. Name a folder with game records.")
    if folder and not begun:
        _make_lists(folder, run / "kifulist")
    run.mkdir(parents=True, exist_ok=True)
    if before != source:
        with write_beside(note) as file:
            file.write(source)
    return [str(path) for path in lists]


def _make_lists(folder: Path, name: Path) -> None:
    """Divides the records of a folder into two lists, neither of which is empty."""
    from pydlshogi.commands.make_kifu_list import make_lists
    from pydlshogi.kifu.split import find_records

    if len(find_records(folder).records) == 1:
        raise UserError(f"{folder} holds one game. Give at least two: one trains, the other tests.")
    make_lists(folder, name, 0.9, 0, absolute=False)
