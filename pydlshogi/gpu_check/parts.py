"""The parts: what each one runs, and what it reads from the output."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Callable, NamedTuple

from pydlshogi.gpu_check.division import join_file
from pydlshogi.gpu_check.job import ROOT, Job, PartError, pairs
from pydlshogi.gpu_check.trainings import (
    train_best,
    train_large_batch,
    train_published,
    train_two_heads,
)
from pydlshogi.layers.gpu.recording import VARIABLE

_MODULES = "pydlshogi.gpu_check"

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

#: Largest differences between GPU and CPU: of the loss and of the accuracy.
_LOSS_TOLERANCE, _ACCURACY_TOLERANCE = 2e-3, 3e-3

#: The methods of the part ``evaluation``, and their options. The figures of the last two are only
#: reported, because they round the factors of products to 11 bits.
_METHODS = {
    "chainer": ("--convolution", "chainer"),
    "float32": ("--precision", "float32"),
    "tf32": ("--precision", "tf32"),
    "float16": ("--precision", "float16"),
}


def machine(job: Job) -> None:
    """Reports the versions, and checks that the GPU computes."""
    lines = job.must("", "-m", f"{_MODULES}.machine", str(job.request.child_gpu))
    for item, text in pairs(lines):
        job.add(item, text)


def reading(job: Job) -> None:
    """Reads the games once; the trainings then load the caches."""
    request = job.request
    lists = (request.kifulist_train, request.kifulist_test)
    for item, text in pairs(job.must("", "-m", f"{_MODULES}.reading", *lists)):
        job.add(Path(item).name, text)


def evaluation(job: Job) -> None:
    """Evaluates the shipped model with every method, and compares with the CPU."""
    gpu = str(job.request.child_gpu)
    games = job.request.kifulist_test if job.request.is_rehearsal else _GAMES
    expected = _evaluate(job, "cpu", games, "--gpu", "-1")
    different = []
    for label, option in _METHODS.items():
        found = _evaluate(job, label, games, "--gpu", gpu, *option)
        far = (
            abs(found[0] - expected[0]) > _LOSS_TOLERANCE,
            abs(found[1] - expected[1]) > _ACCURACY_TOLERANCE,
        )
        if any(far) and label not in ("tf32", "float16"):
            different.append(label)
    if different:
        raise PartError(f"loss or accuracy differs from the CPU's: {', '.join(different)}")


def _evaluate(job: Job, label: str, games: Path, *options: str) -> tuple[float, float]:
    """Returns loss and top-1 accuracy of the shipped model."""
    command = ("utils/evaluate_model.py", str(_MODEL), str(games), "--tsv", *options)
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
    for number, size in enumerate(sizes):
        label = f"{job.request.device} batch_size {size}"
        share = 1 / (len(sizes) + 1 - number)  # the last one is recorded
        option = f"batch_size={size}"
        _moves(job, label, script, job.request.device, model, count, option, share=share)
    if not job.request.is_rehearsal:
        recorded = f"{job.request.device} recorded"
        variables = {VARIABLE: "1"}
        _moves(job, recorded, script, job.request.device, model, count, variables=variables)


def _search_model(job: Job) -> Path:
    """Returns a model with a value head: the shipped one, else that of this run."""
    shipped = ROOT / "model" / "model_policy_value"
    trained = job.request.output / "two_heads" / "model"
    if join_file(trained):
        job.files.append(trained)  # divided again at the end
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
    lines = job.must(name, "-m", f"{_MODULES}.moves", *arguments, share=share, variables=variables)
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
    chosen: tuple[str, ...] = ("tests/test_device.py", "-m", "not gpu and not slow")
    if not job.request.is_rehearsal:
        chosen = (*_TESTS, "-m", "gpu and not slow")
    options = ("-q", "-rfE", "--tb=short", "-p", "no:cacheprovider", "--color=no")
    # A test file that cannot be imported must not stop the others.
    others = "--continue-on-collection-errors"
    ended = job.run("", "-m", "pytest", *chosen, *options, others)
    summary = next((line for line in reversed(ended.lines) if " in " in line), "")
    if re.search(r"\d+ (passed|failed|error|skipped)", summary):
        job.add("summary", summary.strip("= "))
    for line in ended.lines:
        if line.startswith(("FAILED ", "ERROR ")):
            job.add(line.split()[0].lower(), line.partition(" ")[2][:200])
    if ended.status != 0:
        raise PartError(ended.reason)
    if " passed" not in summary:
        raise PartError(f"no test ran: {summary or 'no output'}")


def benchmark(job: Job) -> None:
    """Measures training and play at several batch sizes, with every method."""
    request = job.request
    tsv = request.output / "benchmark.tsv"
    options = ["--tsv", str(tsv), "--seconds", f"{0.7 * job.left:.0f}"]
    options += ["--dry_run"] if request.is_rehearsal else []
    options += ["--torch_python", request.torch_python] if request.torch_python else []
    with job.writing(tsv):
        ended = job.run("", "benchmarks/gpu.py", *options)
    if tsv.exists():
        for item, text in _by_task(tsv.read_text(encoding="utf-8").splitlines()[1:]):
            job.add(item, text)
    if ended.status != 0:
        raise PartError(ended.reason)


def _by_task(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Groups the lines ``task, batch, side, result`` of a benchmark by task and batch."""
    groups: dict[str, list[str]] = {}
    for line in lines:
        task, batch, side, result = line.split("\t")
        groups.setdefault(f"{task}, batch {batch}, positions a second", []).append(
            f"{side} {result}"
        )
    return [(item, "; ".join(found)) for item, found in groups.items()]


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
    "benchmark": Part(benchmark, 5),
    "train_best": Part(train_best, 4),
    "train_large_batch": Part(train_large_batch, 4),
    "train_two_heads": Part(train_two_heads, 5),
    "search": Part(search, 3),
    "train_published": Part(train_published, 3.5),
}
