"""Several processes train the network that one process trains; with a real MPI."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest
from packed_files import EMBEDDED, write_games
from training_together import CASES, DEEP, train_together

from pydlshogi.compat import chainer
from pydlshogi.layers.batch_normalization import BatchNormalization, PlainNormalization
from pydlshogi.layers.cpu.normalize import Normalization
from pydlshogi.model_files.npz import read_npz
from pydlshogi.training.parallel import (
    ALONE,
    ParallelError,
    Ranks,
    join,
    launched,
)

REPOSITORY = Path(__file__).resolve().parents[2]
WORKER = REPOSITORY / "tests/training_together.py"
MPIEXEC = shutil.which("mpiexec", path=os.path.dirname(sys.executable)) or shutil.which("mpiexec")

with_mpi = pytest.mark.skipif(
    not MPIEXEC or not importlib.util.find_spec("mpi4py"), reason="MPI is not installed"
)

SMALL = [name for name in CASES if not name.startswith("network")]
LARGE = [name for name in CASES if name.startswith("network")]
IN_FLOAT32 = [f"network {name}" for name in DEEP]


def environment():
    paths = [str(REPOSITORY), str(REPOSITORY / "tests")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYDLSHOGI_THREADS": "1"}


def mpiexec(ranks, *arguments, timeout=300, **kwargs):
    """Runs Python in some ranks."""
    command = [MPIEXEC, "-n", str(ranks), sys.executable, *map(str, arguments)]
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=timeout, **kwargs
    )


def numbers(folder, accuracies=False):
    """The numbers in the lines of a log: either the accuracies, or all others."""
    lines = [line.split("\t")[2] for line in (folder / "log").read_text().splitlines()]
    found = [pair for line in lines for pair in re.findall(r"(\w+) = ([-\d.e]+|nan)", line)]
    return [float(text) for name, text in found if (name == "accuracy") == accuracies]


@pytest.mark.parametrize(
    "on_gpu, gpu, expected",
    [(True, None, 3), (True, 2, 5), (False, None, -1), (False, -1, -1), (False, 2, 5)],
)
def test_a_rank_has_the_gpu_of_its_place_and_never_the_cpu_in_place_of_a_named_one(
    on_gpu, gpu, expected
):
    communicator = SimpleNamespace(mpi_comm=None, rank=7, size=8, intra_rank=3, intra_size=4)
    assert Ranks(communicator, on_gpu).gpu(gpu) == expected


def assert_equal_runs(one, other, tolerance=1e-6):
    """The same parameters and log lines to 1e-6, of the largest number of an array.

    Moments and biases are compared with 0.1: some are 0 but for rounding, as before a
    normalization.
    """
    for file in ("model", "state"):
        ours, theirs = read_npz(one / file), read_npz(other / file)
        assert ours.keys() == theirs.keys()
        for name, array in ours.items():
            if array.dtype.kind == "f" and not name.endswith(("_x2", "seconds")):
                least = 0.1 if file == "state" or name.endswith(("beta", "/b")) else 0
                size = max(numpy.abs(array).max(), least)
                numpy.testing.assert_allclose(
                    theirs[name], array, 0, tolerance * size, err_msg=name
                )
    numpy.testing.assert_allclose(numbers(one), numbers(other), tolerance, tolerance)
    assert len(numbers(one)) > 4
    # Two labels of a position may be equally probable but for rounding, which depends on the
    # processor. An accuracy is measured on at least 6 positions.
    accuracies = numbers(one, accuracies=True), numbers(other, accuracies=True)
    numpy.testing.assert_allclose(*accuracies, 0, 1 / 6 + 1e-6)
    assert accuracies[0]


def tolerance_of(name):
    """The rounding of Winograd's convolution grows faster, on some processors to 3e-6."""
    return 1e-6 if CASES[name].convolution == "chainer" else 1e-4


def train_alone(tmp_path, names):
    for name in names:
        (tmp_path / "one" / name).mkdir(parents=True)
        train_together(tmp_path / "one" / name, name)


def train_in(ranks, folder, names, part="all"):
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
    result = mpiexec(ranks, WORKER, folder, part, *names)
    assert result.returncode == 0, result.stderr


@with_mpi
def test_two_ranks_train_the_network_of_one_process(tmp_path):
    train_alone(tmp_path, SMALL)
    train_in(2, tmp_path / "two", SMALL)
    for name in SMALL:
        assert_equal_runs(tmp_path / "one" / name, tmp_path / "two" / name, tolerance_of(name))


@with_mpi
@pytest.mark.slow
def test_three_ranks_train_the_network_of_one_process(tmp_path):
    train_alone(tmp_path, SMALL)
    train_in(3, tmp_path / "three", SMALL)
    for name in SMALL:
        assert_equal_runs(tmp_path / "one" / name, tmp_path / "three" / name, tolerance_of(name))


@with_mpi
@pytest.mark.slow
def test_a_run_is_resumed_by_another_number_of_ranks(tmp_path):
    train_alone(tmp_path, ["resumed"])
    for part, ranks in enumerate((3, 1, 2)):
        train_in(ranks, tmp_path / "other", ["resumed"], part)
    assert_equal_runs(tmp_path / "one/resumed", tmp_path / "other/resumed")


@with_mpi
@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_every_network_is_trained_alike_by_ranks(tmp_path, name):
    train_alone(tmp_path, [name])
    trained = read_npz(tmp_path / "one" / name / "model")
    assert {array.dtype for key, array in trained.items() if key.endswith("/W")} == {
        numpy.dtype(CASES[name].dtype)
    }
    for ranks in (2, 3):
        train_in(ranks, tmp_path / str(ranks), [name])
        # In float32 a value may cross a ReLU in the first update; see training_together.
        tolerance = 1e-3 if name in IN_FLOAT32 else 1e-6
        assert_equal_runs(tmp_path / "one" / name, tmp_path / str(ranks) / name, tolerance)


def test_a_process_without_mpiexec_is_alone_and_imports_no_mpi():
    code = (
        "import sys; from pydlshogi.training import parallel, run; "
        "assert parallel.join() is parallel.ALONE; "
        "assert not {'mpi4py', 'chainermn'} & set(sys.modules)"
    )
    environ = {k: v for k, v in environment().items() if not k.startswith(("PMI", "OMPI"))}
    subprocess.run([sys.executable, "-c", code], check=True, env=environ)


def test_the_launcher_is_recognized_by_its_variables(monkeypatch):
    for name in ("PMI_SIZE", "PMI_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert launched() == (0, 1)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    assert launched() == (3, 4)
    monkeypatch.setenv("PMI_SIZE", "1")
    assert launched() == (0, 1)
    assert join() is ALONE
    with pytest.raises(ParallelError, match="this is one. Start the program with mpiexec"):
        join("naive")


PROGRAM = ["train_policy.py", "train.txt", "test.txt", "--gpu", "-1"]


def start(ranks, folder, *options):
    """Starts the program in some ranks, with a log that says when training starts."""
    script = str(REPOSITORY / PROGRAM[0])
    command = [MPIEXEC, "-n", str(ranks), sys.executable, script, *PROGRAM[1:], "--log", "log"]
    process = subprocess.Popen(
        [*command, *options],
        cwd=folder,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while "start training" not in ((folder / "log").read_text() if _exists(folder) else ""):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.1)
    time.sleep(2)  # signals are caught a moment later
    return process


def _exists(folder):
    return (folder / "log").exists()


def process_of_rank(rank, mpiexec_process):
    """The number of the process that is a rank, below mpiexec and its proxy."""
    (proxy,) = children(mpiexec_process.pid)
    for process in children(proxy):
        variables = Path(f"/proc/{process}/environ").read_text().split("\0")
        if f"PMI_RANK={rank}" in variables:
            return process
    raise AssertionError(f"no rank {rank}")


def children(process):
    return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))


@with_mpi
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="finds the ranks in /proc")
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])  # Windows has no SIGKILL
def test_a_signal_to_one_rank_ends_all(folder, rank, name):
    process = start(2, folder, "-b", "2", "--model", "m", "--state", "s", "--iterations", "1000")
    os.kill(process_of_rank(rank, process), getattr(signal, name))
    begin = time.monotonic()
    process.communicate(timeout=60)
    assert time.monotonic() - begin < (5 if name == "SIGKILL" else 20)
    assert process.returncode != 0
    assert (folder / "s").exists() == (name == "SIGTERM")


@with_mpi
def test_the_number_of_threads_may_be_set_on_one_rank_only(folder):
    script = [str(REPOSITORY / PROGRAM[0]), *PROGRAM[1:], "--iterations", "1", "-b", "2"]
    variables = {name: value for name, value in environment().items() if "THREADS" not in name}
    with_threads = "import os, sys; os.environ['PYDLSHOGI_THREADS'] = '1'; os.execv("
    with_threads += "sys.executable, [sys.executable, *sys.argv[1:]])"
    command = [MPIEXEC, "-n", "1", sys.executable, "-c", with_threads, *script]
    command += [":", "-n", "1", sys.executable, *script]
    result = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr


_FAILING = """
import sys
from pydlshogi.commands import train_policy
from pydlshogi.training import batches
from pydlshogi.training.parallel import launched
convert = batches.PlanesConverter.__call__
def fail(self, *arguments):
    if launched()[0] == 1:
        open("failed", "w").close()
        {failure}
    return convert(self, *arguments)
batches.PlanesConverter.__call__ = fail
sys.exit(train_policy.main())
"""


@with_mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ("raise MemoryError", "there is not enough memory"),
        ("1 / 0", "ZeroDivisionError: "),
        ("sys.exit(3)", "rank 1 ended with status 3"),
    ],
)
def test_a_rank_that_fails_ends_all_with_one_message(folder, failure, message):
    (folder / "fail.py").write_text(_FAILING.format(failure=failure))
    result = mpiexec(2, "fail.py", *PROGRAM[1:], cwd=folder, timeout=60)
    assert time.time() - (folder / "failed").stat().st_mtime < 5
    assert result.returncode != 0
    assert result.stderr.count(message) == 1, result.stderr
    assert result.stderr.count("Traceback") == (failure == "1 / 0")


@with_mpi
@pytest.mark.slow
def test_the_ranks_receive_the_visits_of_a_list(folder):
    (folder / "games.hcpe3").write_bytes(write_games(EMBEDDED[:2])[0])
    (folder / "searched.txt").write_text("games.hcpe3\n")
    program = [REPOSITORY / PROGRAM[0], "searched.txt", *PROGRAM[2:]]
    words = "-b 4 --seed 1 --iterations 3 --convolution chainer --policy_target visits"
    for ranks in (1, 2):
        files = ["--model", f"model{ranks}", "--state", f"state{ranks}"]
        result = mpiexec(ranks, *program, *words.split(), *files, cwd=folder)
        assert result.returncode == 0, result.stderr
    one, two = read_npz(folder / "model1"), read_npz(folder / "model2")
    for name, array in one.items():
        if array.dtype.kind == "f":
            numpy.testing.assert_allclose(two[name], array, 0, 1e-6 * abs(array).max() + 1e-9)


_THREADS = """
import os
from pathlib import Path
from pydlshogi.training.parallel import join
ranks = join(None, -1)
divided, bound = ranks.threads(8), 1
if hasattr(os, "sched_setaffinity"):
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, [processors[ranks.rank % len(processors)]])
    bound = ranks.threads(1)
Path(f"threads{ranks.rank}").write_text(f"{divided} {bound}")
"""


@with_mpi
@pytest.mark.parametrize(("ranks", "threads"), [(2, 4), (3, 2)])
def test_the_ranks_of_a_host_divide_its_processors(tmp_path, ranks, threads):
    (tmp_path / "threads.py").write_text(_THREADS)
    result = mpiexec(ranks, "threads.py", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    for rank in range(ranks):
        # Bound to a processor, a rank has one thread, also where others share the processor.
        assert (tmp_path / f"threads{rank}").read_text() == f"{threads} 1"


@with_mpi
def test_sigterm_to_mpiexec_saves_and_ends_all_ranks(folder):
    process = start(2, folder, "-b", "2", "--model", "m", "--state", "s", "--iterations", "1000")
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert "; saved" in (folder / "log").read_text()
    assert (folder / "m").exists()
    assert (folder / "s").exists()


@with_mpi
@pytest.mark.long
def test_caches_that_are_cut_during_a_training_do_no_harm(folder):
    process = start(2, folder, "-b", "2", "--model", "m", "--state", "s", "--iterations", "1000")
    for name in ("train.pickle", "test.pickle"):
        os.truncate(folder / name, 0)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert (folder / "s").exists()


@with_mpi
def test_a_test_set_without_a_result_is_validated(folder):
    games = Path(folder / "test.txt").read_text().split()
    records = [(folder / game).read_text(encoding="utf-8").splitlines() for game in games]
    lines = [line for lines in records for line in lines if line[0] not in "%'"]
    (folder / "unknown.csa").write_text("\n".join(lines[: len(lines) // len(games)]) + "\n")
    (folder / "unknown.txt").write_text("unknown.csa\n")
    script = str(REPOSITORY / PROGRAM[0])
    options = (
        "--gpu -1 --network policy_value_small -b 8 --iterations 2 --eval_interval 2 --log log"
    )
    result = mpiexec(2, script, "train.txt", "unknown.txt", *options.split(), cwd=folder)
    assert result.returncode == 0, result.stderr
    assert numpy.isnan(numbers(folder)).any()


@with_mpi
def test_an_error_is_told_once(folder):
    result = mpiexec(2, REPOSITORY / PROGRAM[0], "train.txt", "nothing.txt", cwd=folder)
    assert result.returncode == 1
    assert result.stderr.count("nothing.txt cannot be read") == 1
    result = mpiexec(2, REPOSITORY / PROGRAM[0], "train.txt", cwd=folder)
    assert result.returncode == 2
    assert result.stderr.count("kifulist_test") == 1


@with_mpi
def test_an_mpiexec_of_another_mpi_is_refused(folder):
    other = {**environment(), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}
    result = subprocess.run(
        [sys.executable, REPOSITORY / PROGRAM[0], *PROGRAM[1:]],
        cwd=folder,
        env=other,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert "it uses another MPI" in result.stderr
    assert not list(folder.glob("model*"))


@pytest.mark.parametrize("kind", [Normalization, PlainNormalization])
@pytest.mark.parametrize("relu", [False, True])
def test_the_statistics_of_one_rank_are_those_of_chainer(device, kind, relu):
    if kind is Normalization:  # it computes on the CPU only
        device = chainer.get_device("@numpy")
    random = numpy.random.RandomState(1)
    arrays = [random.randn(*shape).astype("f") for shape in ((5, 7, 9, 9), (7,), (7,))]
    g = device.send(random.randn(5, 7, 9, 9).astype("f"))
    results = []
    for function in (
        lambda *inputs: kind(2e-5, relu, ALONE).apply(inputs)[0],
        lambda *inputs: chainer.functions.batch_normalization(*inputs, eps=2e-5),
    ):
        inputs = [chainer.Variable(device.send(array)) for array in arrays]
        y = function(*inputs)
        if relu and len(results):
            y = chainer.functions.relu(y)
        y.grad = g
        y.backward()
        results.append([y.array, *(variable.grad for variable in inputs)])
    for ours, theirs in zip(*results):
        ours, theirs = (chainer.get_device("@numpy").send(array) for array in (ours, theirs))
        numpy.testing.assert_allclose(ours, theirs, 1e-4, 1e-4)


def test_the_normalization_of_ranks_takes_the_output_of_a_linear_layer():
    x = numpy.random.RandomState(1).randn(5, 7).astype("f")
    ours, theirs = BatchNormalization(7), chainer.links.BatchNormalization(7)
    ours.ranks = ALONE
    with chainer.using_config("train", True):
        numpy.testing.assert_allclose(ours(x).array, theirs(x).array, 1e-4, 1e-4)
    numpy.testing.assert_allclose(ours.avg_var, theirs.avg_var, 1e-4)


def test_an_idle_rank_gets_no_gradient():
    ranks = Ranks()
    ranks.idle = True
    ranks.gather = lambda numbers: numpy.stack([0 * numpy.array(numbers), numpy.ones_like(numbers)])
    for kind in (Normalization, PlainNormalization):
        x = chainer.Variable(numpy.random.RandomState(1).randn(1, 3, 2, 2).astype("f"))
        y = kind(2e-5, False, ranks).apply((x, numpy.ones(3, "f"), numpy.zeros(3, "f")))[0]
        y.grad = numpy.ones_like(y.array)
        y.backward()
        assert not x.grad.any()
