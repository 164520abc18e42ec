"""The run of all parts: failures, time limits, the table, and the program around it."""

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import gpu
import gpu_check
import numpy
import pytest
from gpu_check import ChecksFailed, check
from gpu_parts import measure, parts
from gpu_parts.job import Job, PartError, Request, pairs
from gpu_parts.process import Ended
from gpu_parts.table import Row, Table, claim

from pydlshogi.commands.train_kifu import PRESETS
from pydlshogi.commands.train_options import build_parser as training_parser
from pydlshogi.compat import chainer
from pydlshogi.errors import UserError
from pydlshogi.layers.gpu import products

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def request_of(tmp_path):
    def make(gpu=-1, **changes):
        lists = {
            name: ROOT / "kifu" / f"{name}.txt" for name in ("kifulist_train", "kifulist_test")
        }
        return Request(
            **{"gpu": gpu, "minutes": 1.0, "epoch": 2, "output": tmp_path, **lists, **changes}
        )

    return make


@pytest.fixture
def fake_parts(monkeypatch):
    """Replaces the parts; each function notes the seconds it was given."""
    given = {}

    def replace(**functions):
        def noting(name, function):
            def run(job):
                given[name] = job.left
                return function(job)

            return parts.Part(run, 1)

        made = {name: noting(name, function) for name, function in functions.items()}
        monkeypatch.setattr(gpu_check, "PARTS", made)
        return given

    return replace


def fail(job):
    job.add("half", "done")
    raise PartError("the reason")


def test_a_part_that_fails_is_named_and_the_others_go_on(fake_parts, request_of, tmp_path):
    def broken(job):
        raise ZeroDivisionError("a fault")

    fake_parts(first=fail, second=broken, third=lambda job: job.add("speed", "7"))
    with pytest.raises(ChecksFailed, match="2 of 3 parts failed: first, second") as error:
        check(request_of(), ["first", "second", "third"])
    assert "table.md" in str(error.value)
    rows = [line.split("\t") for line in (tmp_path / "table.tsv").read_text().splitlines()]
    assert rows == [
        ["part", "item", "result"],
        ["first", "outcome", "FAILED: the reason (0 s)"],
        ["first", "half", "done"],
        ["second", "outcome", "FAILED: ZeroDivisionError: a fault (0 s)"],
        ["third", "outcome", "done (0 s)"],
        ["third", "speed", "7"],
    ]


def test_the_time_that_a_part_leaves_goes_to_the_later_ones(fake_parts, request_of):
    given = fake_parts(**dict.fromkeys("abc", lambda job: None))
    check(request_of(), ["a", "b", "c"])
    assert [round(given[name]) for name in "abc"] == [20, 30, 60]


def test_without_a_gpu_that_computes_nothing_else_runs(fake_parts, request_of):
    given = fake_parts(machine=fail, later=lambda job: None)
    with pytest.raises(ChecksFailed):
        check(request_of(), ["machine", "later"])
    assert list(given) == ["machine"]


def test_after_ctrl_c_the_table_has_the_results_so_far(fake_parts, request_of, tmp_path, capsys):
    def interrupted(job):
        job.add("half", "done")
        raise KeyboardInterrupt

    given = fake_parts(first=interrupted, later=lambda job: None)
    with pytest.raises(KeyboardInterrupt):
        check(request_of(), ["first", "later"])
    assert list(given) == ["first"]
    assert "| first | outcome | interrupted (0 s) |\n| first | half | done |" in (
        tmp_path / "table.md"
    ).read_text(encoding="utf-8")
    assert "| first | half | done |" in capsys.readouterr().out


def test_another_run_replaces_the_rows_of_its_parts_only(tmp_path):
    table = Table(tmp_path)
    table.replace("a", [Row("a", "x", "1"), Row("a", "y", "2|3\n4")])
    table.replace("b", [Row("b", "x", "5")])
    again = Table(tmp_path)
    again.replace("a", [Row("a", "z", "6")])
    assert (tmp_path / "table.tsv").read_text().splitlines()[1:] == ["a\tz\t6", "b\tx\t5"]
    assert "| a | y | 2\\|3 4 |" in table.markdown()


FILES_OF_A_TRAINING = ["log.png", "log.txt", "model", "state"]


@pytest.mark.parametrize("file", FILES_OF_A_TRAINING)
def test_a_training_keeps_a_file_that_the_user_has_put_in_its_place(
    request_of, tmp_path, capsys, file
):
    path = tmp_path / "best" / file
    path.parent.mkdir()
    path.write_text("days of training")
    job = FakeJob("train_best", request_of(gpu=0), RATES)
    with pytest.raises(PartError, match="curve"):
        parts.train_best(job)
    kept = path.with_name(f"{file}.old")
    assert kept.read_text() == "days of training"
    assert f"{path} exists already; it is kept as {kept}" in capsys.readouterr().out


def test_a_training_keeps_the_files_of_an_earlier_check_under_another_name(request_of, tmp_path):
    class Trained(FakeJob):
        def run(self, label, *command, **options):
            ended = super().run(label, *command, **options)
            if not label:
                for file in FILES_OF_A_TRAINING:
                    assert not (tmp_path / "best" / file).exists()
                    (tmp_path / "best" / file).write_text(self.content)
            return ended

    for content in ("first", "second"):
        job = Trained("train_best", request_of(gpu=0), RATES)
        job.content = content
        parts.train_best(job)
    found = {path.name: path.read_text() for path in (tmp_path / "best").iterdir()}
    # No state, which nobody needs.
    names = ("log.png", "log.txt", "model")
    assert found == {
        **dict.fromkeys(names, "second"),
        **{f"{name}.old": "first" for name in names},
    }


def test_an_interrupted_training_leaves_files_that_the_next_check_replaces(request_of, tmp_path):
    class Interrupted(FakeJob):
        def run(self, label, *command, **options):
            if not label:
                for file in ("model", "state"):
                    (tmp_path / "best" / file).write_text("x")
                raise KeyboardInterrupt
            return super().run(label, *command, **options)

    for _ in range(2):
        job = Interrupted("train_best", request_of(gpu=0), RATES)
        with pytest.raises(KeyboardInterrupt):
            parts.train_best(job)
    found = sorted(path.name for path in (tmp_path / "best").iterdir())
    assert found == ["model", "model.old"]  # of the same content, so there is one copy


def test_a_folder_of_the_user_is_refused_and_unchanged(tmp_path, capsys):
    output = tmp_path / "run"
    (output / "best").mkdir(parents=True)
    (output / "best" / "model").write_text("days of training")
    (output / "table.tsv").write_text("engine\topponent\nrandom\tfairy\n")  # of a match
    before = sorted(tmp_path.rglob("*"))
    assert gpu_check.main(["--gpu", "-1", "-o", str(output), "--parts", "machine"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"gpu_check: error: --output {output} holds files, and no table.tsv")
    assert error.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before
    assert gpu_check.main(["--gpu", "-1", "-o", str(output / "table.tsv")]) == 1
    assert "table.tsv is a file. Name a folder" in capsys.readouterr().err


def test_a_folder_of_an_earlier_check_is_accepted_also_after_a_kill(tmp_path):
    output = tmp_path / "new" / "run"
    claim(output)
    (output / "logs").mkdir()  # then the run was killed
    claim(output)
    Table(output).replace("machine", [Row("machine", "GPU", "none")])
    before = (output / "table.tsv").read_bytes()
    claim(output)
    assert (output / "table.tsv").read_bytes() == before
    (tmp_path / "empty" / ".git").mkdir(parents=True)
    claim(tmp_path / "empty")


def test_the_search_needs_a_model_with_a_value_head(request_of, tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "ROOT", tmp_path)
    (tmp_path / "mcts_player_usi.py").touch()
    job = FakeJob("search", request_of(gpu=0), {})
    with pytest.raises(PartError, match="train_two_heads makes one"):
        parts.search(job)
    trained = tmp_path / "two_heads" / "model"
    trained.parent.mkdir()
    trained.write_bytes(b"xx")
    with pytest.raises(PartError, match="no move"):
        parts.search(job)
    assert str(trained) in job.commands["cpu"]
    # Parts run in this order, and the search may need what the training made.
    assert list(parts.PARTS).index("train_two_heads") < list(parts.PARTS).index("search")


def test_children_see_the_chosen_gpu_alone(request_of, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert request_of(gpu=2).environment()["CUDA_VISIBLE_DEVICES"] == "2"
    assert (request_of(gpu=2).child_gpu, request_of(gpu=2).device) == (0, "gpu0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,3")
    assert request_of(gpu=1).environment()["CUDA_VISIBLE_DEVICES"] == "3"


class FakeJob(Job):
    """Runs nothing; gives outputs by label and notes the commands."""

    def __init__(self, name, request, outputs):
        super().__init__(name, request, 100)
        self.outputs = outputs
        self.commands, self.variables = {}, {}

    def run(self, label, *command, share=1.0, variables=None):
        self.variables[label] = variables
        self.commands[label] = [str(word) for word in command]
        status, lines = self.outputs.get(label, (0, []))
        return Ended(status, 1.0, lines)


def results(job):
    return {row.item: row.result for row in job.rows}


def tsv(loss, accuracy):
    return (0, ["moves\tpositions\tloss\ttop_1", f"all\t100\t{loss}\t{accuracy}\t0.9\t0.9"])


@pytest.mark.parametrize(("accuracy", "good"), [(0.4, True), (0.41, False)])
def test_an_evaluation_that_differs_from_the_cpus_fails(request_of, accuracy, good):
    outputs = dict.fromkeys(("cpu", "chainer", "cudnn"), tsv(2.0, 0.4))
    rough = dict.fromkeys(("tf32", "float16", "bfloat16"), tsv(2.1, 0.5))  # reported only
    outputs.update(rough)
    job = FakeJob("evaluation", request_of(gpu=0), {**outputs, "float32": tsv(2.0, accuracy)})
    if good:
        parts.evaluation(job)
    else:
        with pytest.raises(PartError, match="differs from the CPU's: float32$"):
            parts.evaluation(job)
    assert results(job)["cpu"] == "loss 2.000000, accuracy 0.40000 on 100 positions"


@pytest.mark.parametrize(
    ("status", "last", "reason"),
    [
        (0, "159 passed, 800 deselected in 9.1s", ""),
        (1, "1 failed, 158 passed in 9.1s", "exit status 1"),
        (0, "159 skipped, 800 deselected in 9.1s", "no test ran"),
        (1, "/usr/bin/python: No module named pytest", "No module named pytest"),
    ],
)
def test_the_tests_count_only_if_they_ran(request_of, status, last, reason):
    lines = ["....", "FAILED tests/a.py::test_b - assert 1 == 2", last]
    alone = dict.fromkeys(("recordings", "cuDNN"), (0, ["9 passed in 2 s"]))
    job = FakeJob("tests", request_of(gpu=0), {"": (status, lines), **alone})
    if reason:
        with pytest.raises(PartError, match=reason):
            parts.tests(job)
    else:
        parts.tests(job)
        assert results(job)["summary"] == last
    assert results(job)["failed"] == "tests/a.py::test_b - assert 1 == 2"
    assert all("-m gpu and not slow" in " ".join(words) for words in job.commands.values())
    assert results(job)["cuDNN summary"] == "9 passed in 2 s"


def test_after_a_fault_of_the_gpu_in_one_process_the_others_run(request_of):
    outputs = {"": (0, ["9 passed in 2 s"]), "recordings": (-11, ["Fatal Python error"])}
    outputs["cuDNN"] = (0, ["SKIPPED [8] tests/a.py:1: no cuDNN", "1 passed, 8 skipped in 2 s"])
    job = FakeJob("tests", request_of(gpu=0), outputs)
    with pytest.raises(PartError, match="^recordings: .*Fatal Python error"):
        parts.tests(job)
    assert results(job)["cuDNN summary"] == "1 passed, 8 skipped in 2 s"
    assert results(job)["skipped"] == "[8] tests/a.py:1: no cuDNN"


def test_a_method_that_fails_leaves_the_others(request_of):
    outputs = dict.fromkeys(("cpu", *parts._METHODS), tsv(2.0, 0.4))
    outputs["cudnn"] = 1, ["no graph"]
    job = FakeJob("evaluation", request_of(gpu=0), outputs)
    with pytest.raises(PartError, match="^failed: cudnn$"):
        parts.evaluation(job)
    assert results(job)["cudnn"].endswith("no graph")
    assert results(job)["bfloat16"].startswith("loss 2.0")
    answer = (0, ["move\t7g7f\t10\t500"])
    labels = ["cpu", *(f"gpu0-batch_size-{size}" for size in (0, 16, 128, 256)), "gpu0-recorded"]
    outputs = {**dict.fromkeys(labels, answer), "gpu0-batch_size-64": (1, ["out of memory"])}
    job = FakeJob("search", request_of(gpu=0), outputs)
    with pytest.raises(PartError, match="^failed: batch_size 64$"):
        parts.search(job)
    assert "500 nodes a second" in results(job)["gpu0 recorded"]


def test_the_engine_must_play_the_moves_of_the_cpu(request_of):
    same = [f"move\t7g7f\t{time}\t" for time in (10, 20, 90)]
    job = FakeJob("engine", request_of(gpu=0), {"cpu": (0, same), "gpu0": (0, same)})
    parts.engine(job)
    assert results(job)["gpu0"] == "median 20.0 ms from go to bestmove, 3 positions"
    assert results(job)["same move on CPU and GPU"] == "3 of 3"
    other = ["move\t2g2f\t1\t"] * 3
    job = FakeJob("engine", request_of(gpu=0), {"cpu": (0, same), "gpu0": (0, other)})
    with pytest.raises(PartError, match="only 0 of 3 moves"):
        parts.engine(job)


class FakeSides(FakeJob):
    """Writes the lines of a benchmark."""

    def __init__(self, name, request, lines, status=0):
        super().__init__(name, request, {"": (status, ["the last line"])})
        self.lines = ["task\tbatch\tside\tresult", *lines]

    def run(self, label, *command, **options):
        tsv = Path(command[command.index("--tsv") + 1])
        tsv.write_text("\n".join(self.lines) + "\n")
        return super().run(label, *command, **options)


FIGURES = ["train\t32\tchainer float32\t10", "train\t32\tours tf32\tout of memory"]


def test_figures_of_a_benchmark_are_grouped_by_task_and_batch(request_of):
    job = FakeSides("benchmark", request_of(gpu=0), FIGURES)
    parts.benchmark(job)
    assert results(job) == {
        "train, batch 32, positions a second": "chainer float32 10; ours tf32 out of memory"
    }
    job = FakeSides("benchmark", request_of(gpu=0), FIGURES[:1], 1)
    with pytest.raises(PartError, match="the last line"):
        parts.benchmark(job)
    assert results(job) == {"train, batch 32, until it failed": "chainer float32 10"}


@pytest.mark.parametrize("end", ["", "; DIFFERENT"])
def test_losses_beyond_the_noise_fail(request_of, end):
    lines = ["losses\t64\tours float32\t6.1 at the end", f"losses\t64\tcudnn tf32\t6.2{end}"]
    job = FakeSides("losses", request_of(gpu=0), lines)
    if end:
        with pytest.raises(PartError, match="not those of float32: cudnn tf32$"):
            parts.losses(job)
    else:
        parts.losses(job)
    assert [row.result for row in job.rows] == [
        "ours float32 6.1 at the end",
        f"cudnn tf32 6.2{end}",
    ]


TRAININGS = [name for name in parts.PARTS if name.startswith("train_")]
RATES = {
    "rate-tf32": (0, ["iterations a second\t40", "validation, seconds\t12"]),
    "rate-float16": (0, ["a line", "iterations a second\t50", "validation, seconds\t10"]),
    "rate-bfloat16": (0, ["iterations a second\t45", "validation, seconds\t10"]),
    "rate-tf32-recorded": (0, ["iterations a second\t80", "validation, seconds\t10"]),
    "rate-float16-recorded": (0, ["iterations a second\t90", "validation, seconds\t10"]),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_a_training_is_a_command_that_fits_into_the_time(request_of, name, tmp_path):
    job = FakeJob(name, request_of(gpu=0), RATES)
    with pytest.raises(PartError, match="curve"):  # nothing was drawn
        parts.PARTS[name].run(job)
    script, *words = job.commands[""]
    options = training_parser().parse_args(words)
    assert script == "train_policy.py"
    assert 1800 <= options.iterations <= 2200  # 50 a second, 50 - 10 of 100 seconds
    assert options.iterations // options.eval_interval == 8
    assert (options.epoch, options.gpu) == (2, 0)
    assert Path(options.model).parent == tmp_path / name.partition("_")[2]
    assert options.precision == results(job)["precision"] == "float16"
    speed = f"{40 * options.batchsize} positions a second"
    assert results(job)["speed, tf32"] == speed
    speed = f"{90 * options.batchsize} positions a second"
    assert results(job)["speed, float16, recorded"] == speed
    assert job.variables["rate-float16-recorded"] == {"PYDLSHOGI_RECORDING": "1"}
    assert not job.variables["rate-float16"]


def test_a_long_validation_leaves_time_for_iterations(request_of):
    slow = ["iterations a second\t50", "validation, seconds\t200"]
    job = FakeJob("train_best", request_of(gpu=0), dict.fromkeys(RATES, (0, slow)))
    with pytest.raises(PartError):
        parts.train_best(job)
    options = training_parser().parse_args(job.commands[""][1:])
    assert 1100 <= options.iterations <= 1300  # 50 a second, 25 of 100 seconds


def test_the_trainings_are_the_recipes_of_make_train_and_of_the_book(request_of):
    best = PRESETS["best"].options.split()
    expected = vars(training_parser().parse_args(["a", "b", *best]))
    book = vars(training_parser().parse_args(["a", "b"]))
    for name, other in (("train_best", expected), ("train_published", book)):
        job = FakeJob(name, request_of(gpu=0), RATES)
        with pytest.raises(PartError):
            parts.PARTS[name].run(job)
        options = vars(training_parser().parse_args(job.commands[""][1:]))
        for option in [
            "network",
            "batchsize",
            "lr",
            "momentum",
            "nesterov",
            "weight_decay",
            "dirac",
            "lr_schedule",
        ]:
            assert options[option] == other[option]


def test_a_precision_that_fails_leaves_the_other(request_of):
    failed = 1, ["CUDA error"]
    outputs = {**RATES, "rate-float16": failed, "rate-bfloat16": failed}
    outputs["rate-tf32-recorded"] = failed
    job = FakeJob("train_best", request_of(gpu=0), outputs)
    with pytest.raises(PartError, match="curve"):
        parts.train_best(job)
    assert results(job)["precision"] == "tf32"
    assert "CUDA error" in results(job)["speed, float16"]


def test_the_speed_of_bfloat16_is_not_that_of_another_precision(monkeypatch):
    updater = SimpleNamespace(device=chainer.get_device("@numpy"))
    monkeypatch.setattr(measure, "_make_updater", lambda *arguments: updater)
    before = products._chosen
    try:
        with pytest.raises(UserError, match="bfloat16 needs cuDNN"):
            measure.rate("-1", "bfloat16", "policy", "4", "train.txt", "test.txt", "0.1")
    finally:
        products.set_precision(before)


def test_a_training_whose_speed_is_unknown_is_not_started(request_of):
    failed = dict.fromkeys(RATES, (1, ["CUDA error"]))
    job = FakeJob("train_best", request_of(gpu=0), failed)
    with pytest.raises(PartError, match="could not be measured"):
        parts.train_best(job)
    assert "" not in job.commands


def test_pairs_are_lines_with_one_tab():
    assert pairs(["a\tb", "c", "d\te\tf"]) == [("a", "b")]


def test_on_a_machine_without_a_gpu_there_is_one_sentence(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert gpu_check.main(["-o", str(tmp_path / "run")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("gpu_check: error: GPU 0 cannot be checked: CuPy is not installed")
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_an_unknown_part_is_refused(capsys):
    with pytest.raises(SystemExit) as end:
        gpu_check.main(["--gpu", "-1", "--parts", "machine,speed"])
    assert end.value.code == 2
    assert "part 'speed' is unknown" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--output", "--kifulist_train", "--torch_python"])
def test_an_empty_path_is_not_the_default(option, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        gpu_check.main(["--gpu", "-1", "--parts", "machine", option, ""])
    assert "is missing" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_python_that_is_missing_is_told_before_the_first_part(tmp_path, capsys):
    arguments = ["--gpu", "-1", "-o", str(tmp_path / "run"), "--torch_python", "/none/python"]
    assert gpu_check.main(arguments) == 1
    assert "--torch_python /none/python cannot be run" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_list_that_is_missing_is_named(tmp_path, capsys):
    arguments = ["--gpu", "-1", "-o", str(tmp_path), "--kifulist_train", "no.txt"]
    assert gpu_check.main(arguments) == 1
    assert "no.txt: the list does not exist" in capsys.readouterr().err


@pytest.mark.long
def test_parts_run_on_the_cpu_as_a_rehearsal(tmp_path, capsys):
    arguments = ["--gpu", "-1", "-o", str(tmp_path), "--parts", "reading,machine"]
    assert gpu_check.main(arguments) == 0
    table = (tmp_path / "table.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in table] == sorted(
        (line.split("\t")[0] for line in table), key=["part", "machine", "reading"].index
    )
    assert any("positions from the" in line for line in table)
    assert (tmp_path / "logs" / "machine.txt").exists()
    assert "| machine | outcome | done (" in capsys.readouterr().out


@pytest.mark.skipif(os.name == "nt", reason="Windows has no Ctrl-C for a process")
@pytest.mark.long
def test_ctrl_c_ends_the_program_and_what_it_started(tmp_path):
    arguments = ["--gpu", "-1", "-o", str(tmp_path), "--parts", "machine,train_published"]
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "benchmarks" / "gpu_check.py"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    log = tmp_path / "logs" / "train_published-rate-tf32.txt"
    end = time.monotonic() + 60
    while not log.exists() and time.monotonic() < end:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    output, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error == "gpu_check: interrupted. The table has the results so far.\n"
    assert "| train_published | outcome | interrupted (" in output
    assert "interrupted" in (tmp_path / "table.tsv").read_text()


@pytest.mark.slow
def test_all_parts_run_on_the_cpu_as_a_rehearsal(tmp_path, capsys):
    names = [
        name for name in parts.PARTS if name != "search" or (ROOT / "mcts_player_usi.py").exists()
    ]
    arguments = ["--gpu", "-1", "-o", str(tmp_path), "--parts", ",".join(names), "--minutes", "20"]
    assert gpu_check.main(arguments) == 0, capsys.readouterr()
    for name, file in itertools.product(TRAININGS, ("log.txt", "log.png")):
        assert (tmp_path / name.partition("_")[2] / file).stat().st_size
    assert (tmp_path / "best" / "model").exists()
    assert (tmp_path / "two_heads" / "model").exists()


def test_losses_are_compared_with_those_of_float32_and_with_unrecorded_ones():
    random = numpy.random.RandomState(0)
    reference = (6 - numpy.arange(500) / 500 + 0.2 * random.standard_normal(500)).tolist()
    curves = {
        gpu.REFERENCE: reference,
        "cudnn tf32": [loss + 0.001 for loss in reference],
        "cudnn-recorded tf32": [loss + 0.0015 for loss in reference],
        "torch tf32": reference[:450] + [loss + 0.2 for loss in reference[450:]],
        "cudnn bfloat16": [float("nan")] * 500,
        "ours float16": "out of memory",
    }
    texts = {label: gpu.difference(label, curves) for label in curves}
    assert "at most 0.0000 from ours float32, noise 0.0" in texts[gpu.REFERENCE]
    assert "at most 0.0010 from" in texts["cudnn tf32"]
    assert texts["cudnn-recorded tf32"].endswith("; at most 0.0005 from unrecorded")
    different = [label for label, text in texts.items() if text.endswith("; DIFFERENT")]
    assert different == ["torch tf32", "cudnn bfloat16"]
    assert texts["ours float16"] == "out of memory"
    curves[gpu.REFERENCE] = "out of memory"
    assert gpu.difference("cudnn tf32", curves) == "no losses of ours float32: out of memory"
