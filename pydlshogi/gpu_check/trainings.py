"""The parts that train: a recipe each, as long as the part's time allows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydlshogi.gpu_check.job import Job, PartError, pairs
from pydlshogi.layers.gpu.recording import VARIABLE

#: The shipped networks, and the recipe that trains them best.
_POLICY, _TWO_HEADS = "policy_hand1x1_bn", "policy_value_history_bn"
_BEST = (
    *("--batchsize", "64", "--lr", "0.03", "--momentum", "0.9", "--nesterov"),
    *("--weight_decay", "1e-4", "--lr_schedule", "cosine", "--dirac"),
)

#: The other settings of the book's recipe are the defaults of train_policy.
_PUBLISHED = ("--batchsize", "32")

#: Share of a training's time for its iterations and the last validation. The rest is for the
#: start, evaluations, saves and the curve. It is large, because speed varies: on an H200, two
#: measurements of the same training differed by a factor of two.
_SHARE_OF_TRAINING = 0.5

#: Smallest share for the iterations alone.
_SHARE_OF_ITERATIONS = 0.25

#: Evaluations, each with a save, in a training.
_EVALUATIONS = 8


def train_best(job: Job) -> None:
    """Trains the policy network by the best recipe."""
    _train(job, _POLICY, _BEST, warms_up=True)


def train_large_batch(job: Job) -> None:
    """Trains the same network with batches of 256, which use a GPU better, and twice the rate."""
    _train(job, _POLICY, (*_BEST, "--batchsize", "256", "--lr", "0.06"), warms_up=True)


def train_two_heads(job: Job) -> None:
    """Trains the shipped network with two heads by the settings of its last step on a GPU.

    It begins with random weights. Batches of 1024 use a large GPU fully. The target of the value
    head is the λ-return of the evaluations if the games have them, otherwise the result.
    """
    recipe = (*_BEST, "--batchsize", "1024", "--lr", "0.08", "--mirror")
    target = ("--value_lambda", "0", "--td_lambda", "0.9")
    _train(job, _TWO_HEADS, (*recipe, *target), warms_up=True)


def train_published(job: Job) -> None:
    """Trains the book's network by the book's recipe."""
    _train(job, "policy", _PUBLISHED, warms_up=False)


def _train(job: Job, network: str, recipe: Sequence[str], *, warms_up: bool) -> None:
    """Trains as long as the time allows, draws the curve and adds the last results."""
    request = job.request
    folder = request.output / job.name.removeprefix("train_")
    folder.mkdir(exist_ok=True)
    files = {name: folder / name for name in ("model", "state", "log.txt", "log.png")}
    with job.writing(*files.values()):
        try:
            _train_files(job, network, recipe, files, warms_up=warms_up)
        finally:
            # The state is as large as the model, and nobody continues this run.
            files["state"].unlink(missing_ok=True)


def _train_files(
    job: Job, network: str, recipe: Sequence[str], files: dict[str, Path], *, warms_up: bool
) -> None:
    """Trains and draws the curve.

    Args:
        files: The files to write: ``model``, ``state``, ``log.txt`` and ``log.png``.
    """
    request = job.request
    if request.is_rehearsal:
        recipe = (*recipe, "--batchsize", "4")
    # The last word counts, as on the command line.
    batchsize = recipe[len(recipe) - recipe[::-1].index("--batchsize")]
    precision, rate, validation = _fastest(job, network, batchsize)
    seconds = max(job.left * _SHARE_OF_TRAINING - validation, job.left * _SHARE_OF_ITERATIONS)
    iterations = 2 if request.is_rehearsal else max(20, int(rate * seconds))
    evaluations = 1 if request.is_rehearsal else _EVALUATIONS
    warmup = ("--warmup", str(min(200, iterations // 10))) if warms_up else ()
    command = (
        "train_policy.py",
        *(request.kifulist_train, request.kifulist_test),
        *("--gpu", str(request.child_gpu), "--precision", precision),
        *("--network", network, *recipe, *warmup),
        *("--epoch", str(request.epoch), "--iterations", str(iterations)),
        *("--eval_interval", str(iterations // evaluations), "--seed", "0"),
        *("--model", files["model"], "--state", files["state"], "--log", files["log.txt"]),
    )
    # The curve is drawn in the last seconds.
    ended = job.run("", *command, share=0.9)
    if _add_results(job, files["log.txt"], ended.seconds):
        job.run("curve", "utils/plot_log.py", files["log.txt"], "--output", files["log.png"])
    if ended.status != 0:
        raise PartError(ended.reason)
    if not files["log.png"].exists():
        raise PartError("the curve was not drawn; logs has the reason")


class Speed(NamedTuple):
    """How fast a precision trains.

    Attributes:
        precision: Its name.
        rate: Iterations a second.
        validation: Estimated seconds of a validation on the whole test set.
    """

    precision: str
    rate: float
    validation: float


def _fastest(job: Job, network: str, batchsize: str) -> Speed:
    """Measures the precisions of the matrix units; returns the faster one.

    The speed with recordings is only reported.
    """
    speeds = [
        speed
        for precision in ("tf32", "float16")
        if (speed := _speed(job, network, batchsize, precision)) is not None
    ]
    if not speeds:
        raise PartError("the speed of the training could not be measured")
    fastest = max(speeds, key=lambda speed: speed.rate)
    _speed(job, network, batchsize, fastest.precision, recorded=True)
    job.add("precision", fastest.precision)
    return fastest


def _speed(
    job: Job, network: str, batchsize: str, precision: str, recorded: bool = False
) -> Speed | None:
    """Measures a precision, and adds the result; None if that fails.

    Args:
        recorded: Whether to record (:mod:`pydlshogi.layers.gpu.recording`).
    """
    request = job.request
    seconds = "0.1" if request.is_rehearsal else "4"
    words = (str(request.child_gpu), precision, network, batchsize)
    lists = (request.kifulist_train, request.kifulist_test)
    command = ("-m", "pydlshogi.gpu_check.rate", *words, *lists, seconds)
    names = (precision, "recorded") if recorded else (precision,)
    variables = {VARIABLE: "1"} if recorded else {}
    ended = job.run("-".join(("rate", *names)), *command, share=0.25, variables=variables)
    found = dict(pairs(ended.lines))
    result, speed = f"FAILED: {ended.reason}", None
    if ended.status == 0:
        rate, validation = (
            float(found[item]) for item in ("iterations a second", "validation, seconds")
        )
        speed = Speed(precision, rate, validation)
        result = f"{rate * int(batchsize):.0f} positions a second"
    job.add(", ".join(("speed", *names)), result)
    return speed


def _add_results(job: Job, log: Path, seconds: float) -> bool:
    """Adds the last points of a log; returns whether there are any."""
    from pydlshogi.training.log import read_log

    if not log.exists():
        return False
    with log.open(encoding="utf-8") as lines:
        curves = read_log(lines)
    if not curves:
        return False
    for progress in curves[-1].progress[-1:]:
        text = f"iteration {progress.iteration}, loss {progress.loss:.4f}"
        job.add("last evaluation", f"{text}, accuracy {progress.accuracy:.4f}")
    for point in curves[-1].epochs[-1:]:
        text = f"iteration {point.iteration}, epoch {point.epoch}, {seconds:.0f} s, "
        text += f"train loss {point.train_loss:.4f}, test accuracy {point.test_accuracy:.4f}"
        if point.test_value_accuracy is not None:
            text += f", winner {point.test_value_accuracy:.4f}"
        job.add("last validation", text)
    return True
