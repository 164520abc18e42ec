"""The parts: what each one runs, and what it reads from the output."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Callable, NamedTuple

from gpu_parts.job import ROOT, Job, PartError, keep, pairs
from pydlshogi.layers.gpu.recording import VARIABLE
from pydlshogi.training.log import read_log

#: The program that measures in processes of their own.
_MEASURE = "benchmarks/gpu_parts/measure.py"

#: The shipped policy model and the test games of the clone.
_MODEL = ROOT / "model" / "model_policy"
_GAMES = ROOT / "kifu" / "kifulist_test.txt"

#: Tests marked ``gpu`` are in these files and folders. None of them needs cshogi.
_TESTS = (
    "tests/layers",
    "tests/network",
    "tests/model_files",
    "tests/inference",
    "tests/player",
    "tests/training",
    "tests/commands/test_evaluate_model.py",
    "tests/test_device.py",
    "tests/test_features.py",
)

#: Tests with a process of their own: after a fault of the GPU, none of a process passes.
_ALONE = {
    "recordings": "tests/layers/test_gpu_recording.py",
    "cuDNN": "tests/layers/test_gpu_cudnn.py",
}

#: Largest differences between GPU and CPU: of the loss and of the accuracy.
_LOSS_TOLERANCE, _ACCURACY_TOLERANCE = 2e-3, 3e-3

#: The methods of the part ``evaluation``, and their options.
_METHODS = {
    "chainer": ("--convolution", "chainer"),
    "float32": ("--precision", "float32"),
    "cudnn": ("--convolution", "cudnn", "--precision", "float32"),
    "tf32": ("--precision", "tf32"),
    "float16": ("--precision", "float16"),
    "bfloat16": ("--precision", "bfloat16"),
}

#: Methods that round the factors of products. Their figures are only reported.
_ROUGH = ("tf32", "float16", "bfloat16")


def machine(job: Job) -> None:
    """Reports the versions, and checks that the GPU computes."""
    lines = job.must("", _MEASURE, "machine", str(job.request.child_gpu))
    for item, text in pairs(lines):
        job.add(item, text)


def reading(job: Job) -> None:
    """Reads the games once; the trainings then load the caches."""
    request = job.request
    lists = (request.kifulist_train, request.kifulist_test)
    for item, text in pairs(job.must("", _MEASURE, "reading", *lists)):
        job.add(Path(item).name, text)


def evaluation(job: Job) -> None:
    """Evaluates the shipped model with every method, and compares with the CPU."""
    gpu = str(job.request.child_gpu)
    games = job.request.kifulist_test if job.request.is_rehearsal else _GAMES
    expected = _evaluate(job, "cpu", games, "--gpu", "-1")
    different, failed = [], []
    for label, option in _METHODS.items():
        if label == "bfloat16" and job.request.is_rehearsal:  # no CPU computes it
            continue
        try:
            found = _evaluate(job, label, games, "--gpu", gpu, *option)
        except PartError as error:  # the other methods may work
            job.add(label, f"FAILED: {error}")
            failed.append(label)
            continue
        far = (
            abs(found[0] - expected[0]) > _LOSS_TOLERANCE,
            abs(found[1] - expected[1]) > _ACCURACY_TOLERANCE,
        )
        if any(far) and label not in _ROUGH:
            different.append(label)
    if different:
        raise PartError(f"loss or accuracy differs from the CPU's: {', '.join(different)}")
    if failed:
        raise PartError(f"failed: {', '.join(failed)}")


def _evaluate(job: Job, label: str, games: Path, *options: str) -> tuple[float, float]:
    """Returns loss and top-1 accuracy of the shipped model."""
    command = ("-m", "pydlshogi", "evaluate_model", str(_MODEL), str(games), "--tsv", *options)
    lines = job.must(label, *command)
    cells = next((line.split("\t") for line in lines if line.startswith("all\t")), None)
    if cells is None:
        raise PartError(f"{label}: evaluate_model printed no line for all positions")
    loss, accuracy = float(cells[2]), float(cells[3])
    job.add(label, f"loss {loss:.6f}, accuracy {accuracy:.5f} on {cells[1]} positions")
    return loss, accuracy


def engine(job: Job) -> None:
    """Times the moves of the policy player, and compares them with the CPU's."""
    count = 3 if job.request.is_rehearsal else 60
    played = {}
    for device in dict.fromkeys(("cpu", job.request.device)):
        played[device] = _moves(job, device, "policy_player_usi.py", device, _MODEL, count)
    if len(played) == 2:
        cpu, gpu = (moves for moves in played.values())
        same = sum(a == b for a, b in zip(cpu, gpu))
        job.add("same move on CPU and GPU", f"{same} of {len(cpu)}")
        if same < 0.9 * len(cpu):
            raise PartError(f"only {same} of {len(cpu)} moves are those of the CPU")


def search(job: Job) -> None:
    """Measures the nodes a second of the search, for several batch sizes."""
    script = "mcts_player_usi.py"
    if not (ROOT / script).exists():
        raise PartError(f"this version has no {script}")
    model = _search_model(job)
    job.add("model", str(model))
    count = 1 if job.request.is_rehearsal else 6
    sizes = ("0",) if job.request.is_rehearsal else ("0", "16", "64", "128", "256")
    if not job.request.is_rehearsal:
        _moves(job, "cpu", script, "cpu", model, count, share=0.3)
    searches: list[tuple[str, tuple[str, ...], dict[str, str]]] = [
        (f"batch_size {size}", (f"batch_size={size}",), {}) for size in sizes
    ]
    if not job.request.is_rehearsal:
        searches.append(("recorded", (), {VARIABLE: "1"}))
    failed = []
    for number, (name, options, variables) in enumerate(searches):
        label, share = f"{job.request.device} {name}", 1 / (len(searches) - number)
        arguments = (script, job.request.device, model, count, *options)
        try:
            _moves(job, label, *arguments, share=share, variables=variables)
        except PartError as error:  # the other searches may work
            job.add(label, f"FAILED: {error}")
            failed.append(name)
    if failed:
        raise PartError(f"failed: {', '.join(failed)}")


def _search_model(job: Job) -> Path:
    """Returns a model with a value head: the shipped one, else that of this run."""
    shipped = ROOT / "model" / "model_policy_value"
    trained = job.request.output / "two_heads" / "model"
    for model in (shipped, trained):
        if model.exists():
            return model
    raise PartError("there is no model with a value head; the part train_two_heads makes one")


def _moves(
    job: Job,
    label: str,
    script: str,
    device: str,
    model: Path,
    count: int,
    *options: str,
    share: float = 1.0,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Lets an engine move, adds the median time, and returns the moves."""
    go = "go btime 0 wtime 0 byoyomi 1000"
    arguments = (script, device, str(model), str(_GAMES), str(count), go, *options)
    name = label.replace(" ", "-")
    lines = job.must(name, _MEASURE, "moves", *arguments, share=share, variables=variables)
    answers = [line.split("\t")[1:] for line in lines if line.startswith("move\t")]
    if not answers:
        raise PartError(f"{label}: the engine made no move")
    times = statistics.median(float(milliseconds) for _, milliseconds, _ in answers)
    text = f"median {times:.1f} ms from go to bestmove, {len(answers)} positions"
    nodes = [float(nps) for *_, nps in answers if nps]
    if nodes:
        text = f"median {statistics.median(nodes):.0f} nodes a second, {text}"
    job.add(label, text)
    return [move for move, *_ in answers]


def tests(job: Job) -> None:
    """Runs the tests marked ``gpu``."""
    if job.request.is_rehearsal:
        _run_tests(job, "", "tests/test_device.py", "-m", "not gpu and not slow")
        return
    chosen, problems = ("-m", "gpu and not slow"), []
    ignored = (f"--ignore={path}" for path in _ALONE.values())
    runs = {"": (*_TESTS, *ignored), **{label: (path,) for label, path in _ALONE.items()}}
    for number, (label, paths) in enumerate(runs.items()):
        try:
            _run_tests(job, label, *paths, *chosen, share=1 / (len(runs) - number))
        except PartError as error:
            problems.append(f"{label}: {error}" if label else str(error))
    if problems:
        raise PartError("; ".join(problems))


def _run_tests(job: Job, label: str, *chosen: str, share: float = 1.0) -> None:
    """Runs some tests, and adds their summary."""
    options = ("-q", "-rfEs", "--tb=short", "-p", "no:cacheprovider", "--color=no")
    # A test file that cannot be imported must not stop the others.
    others = "--continue-on-collection-errors"
    ended = job.run(label, "-m", "pytest", *chosen, *options, others, share=share)
    summary = next((line for line in reversed(ended.lines) if " in " in line), "")
    if re.search(r"\d+ (passed|failed|error|skipped)", summary):
        job.add(" ".join(filter(None, (label, "summary"))), summary.strip("= "))
    for line in ended.lines:
        if line.startswith(("FAILED ", "ERROR ", "SKIPPED ")):
            job.add(line.split()[0].lower(), line.partition(" ")[2][:200])
    if ended.status != 0:
        raise PartError(ended.reason)
    if " passed" not in summary:
        raise PartError(f"no test ran: {summary or 'no output'}")


def benchmark(job: Job) -> None:
    """Measures training and play at several batch sizes, with every method."""
    seconds = ("--seconds", f"{0.7 * job.left:.0f}")
    for (task, batch), found in _by_task(_sides(job, *seconds)).items():
        job.add(f"{task}, batch {batch}, positions a second", "; ".join(found))


def losses(job: Job) -> None:
    """Makes training steps with every method, and compares the losses."""
    steps = "3" if job.request.is_rehearsal else "200"
    lines = _sides(job, "--losses", str(job.request.kifulist_train), "--steps", steps)
    for (_, batch), found in _by_task(lines).items():
        for text in found:
            job.add(f"batch {batch}", text)
    different = [line.split("\t")[2] for line in lines if line.endswith("; DIFFERENT")]
    if different:
        raise PartError(f"the losses are not those of float32: {', '.join(different)}")


def _sides(job: Job, *options: str) -> list[str]:
    """Runs the benchmark; returns the lines ``task, batch, side, result``."""
    request = job.request
    tsv = request.output / f"{job.name}.tsv"
    command = ["benchmarks/gpu.py", "--tsv", str(tsv), *options]
    command += ["--dry_run"] if request.is_rehearsal else []
    command += ["--torch_python", request.torch_python] if request.torch_python else []
    keep(tsv)
    ended = job.run("", *command)
    lines = tsv.read_text(encoding="utf-8").splitlines()[1:] if tsv.exists() else []
    if ended.status != 0:
        for (task, batch), found in _by_task(lines).items():
            job.add(f"{task}, batch {batch}, until it failed", "; ".join(found))
        raise PartError(ended.reason)
    return lines


def _by_task(lines: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """Groups the lines of a benchmark by task and batch: texts ``side result``."""
    groups: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        task, batch, side, result = line.split("\t")
        groups.setdefault((task, batch), []).append(f"{side} {result}")
    return groups


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
    keep(*files.values())
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
        curve = (files["log.txt"], "--output", files["log.png"])
        job.run("curve", "-m", "pydlshogi", "plot_log", *curve)
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
    """Measures the precisions of the matrix units; returns the fastest one.

    The speed with recordings is only reported.
    """
    precisions = ["tf32", "float16"]
    if not job.request.is_rehearsal:  # no CPU computes it
        precisions.append("bfloat16")
    speeds = [
        speed
        for precision in precisions
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
    command = (_MEASURE, "rate", *words, *lists, seconds)
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


class Part(NamedTuple):
    """A part of the run.

    Attributes:
        run: Runs it.
        weight: Its share of the time, relative to the other parts.
    """

    run: Callable[[Job], None]
    weight: float


#: The parts in order. Time that a part does not use goes to the later ones.
PARTS = {
    "machine": Part(machine, 3),
    "reading": Part(reading, 4),
    "evaluation": Part(evaluation, 3),
    "engine": Part(engine, 1.5),
    "tests": Part(tests, 4),
    "losses": Part(losses, 4),
    "benchmark": Part(benchmark, 5),
    "train_best": Part(train_best, 4),
    "train_large_batch": Part(train_large_batch, 4),
    "train_two_heads": Part(train_two_heads, 5),
    "search": Part(search, 3),
    "train_published": Part(train_published, 3.5),
}
