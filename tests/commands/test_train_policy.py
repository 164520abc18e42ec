"""The program train_policy from end to end, on a few real games."""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import warnings
from pathlib import Path

import pytest
from training_helpers import SmallNetwork, assert_same_files, assert_same_parameters

from pydlshogi.commands import train
from pydlshogi.commands.train_policy import main
from pydlshogi.compat import chainer
from pydlshogi.layers.convolution import get_convolution, set_convolution
from pydlshogi.layers.cpu.threads import get_threads, set_threads
from pydlshogi.lock import lock_outputs
from pydlshogi.model_files.npz import read_npz
from pydlshogi.network.policy import PolicyNetwork
from pydlshogi.read_kifu import read_kifu
from pydlshogi.training import checkpoint, run
from pydlshogi.training.log import read_log
from pydlshogi.training.state import OWN

REPOSITORY = Path(__file__).resolve().parents[2]


class SmallPolicy(SmallNetwork):
    """Stands for PolicyNetwork where only the program around it is tested."""


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(run, "make_network", lambda name: SmallPolicy())


def call(options):
    """Calls the program on the CPU with the two lists."""
    assert main(["train.txt", "test.txt", "--gpu", "-1", *options.split()]) == 0


def messages(path="log"):
    """The messages of a log, after a check of the form of its lines."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    form = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\t(INFO|WARNING|ERROR)\t(.+)")
    return [form.fullmatch(line)[2] for line in lines]


def test_a_whole_run_of_the_policy_network(folder):
    call("--iterations 4 -i 2 -b 4 --test_batchsize 8 --log log --seed 1 --lr 0.1")
    number = r"[\d.e+-]+"
    kinds = [
        r"read kifu start",
        r"save train pickle",
        r"save test pickle",
        r"read kifu end",
        r"train position num = \d+",
        r"test position num = \d+",
        r"train: 3 records, 3 used, .*",
        r"test: 2 records, 2 used, .*",
        r"training positions that are also in the test set = \d+",
        r"network = policy, batch size = \d+",
        r"start training",
        rf"epoch = 1, iteration = 2, loss = {number}, accuracy = {number}",
        rf"epoch = 1, iteration = 4, loss = {number}, accuracy = {number}",
        r"validate test data",
        rf"epoch = 1, iteration = 4, train loss avr = {number}, test accuracy = {number}",
        rf"epoch = 1, iteration = 4, test loss = {number}",
        r"save the model",
        r"save the optimizer",
    ]
    found = messages()
    assert len(found) == len(kinds)
    for kind, message in zip(kinds, found):
        assert re.fullmatch(kind, message), (kind, message)
    network = PolicyNetwork()
    chainer.serializers.load_npz(str(folder / "model" / "model_policy"), network)
    optimizer = chainer.optimizers.SGD().setup(network)
    chainer.serializers.load_npz(str(folder / "model" / "state_policy"), optimizer)
    assert (optimizer.t, optimizer.epoch) == (4, 0)


def test_a_finished_run_names_its_files_and_the_terminal_shows_its_figures(folder, small, capsys):
    call("--iterations 2 -i 2 --model m --state s --log log")
    shown = capsys.readouterr()
    assert shown.out == "m: model; s: state; log: log\n"
    assert "iteration = 2, loss = " in shown.err
    assert "read kifu start" not in shown.err


def test_under_make_the_hint_is_the_command_of_the_makefile(folder, small, interrupt, monkeypatch):
    monkeypatch.setenv("PYDLSHOGI_CONTINUE", "make train")
    interrupt(2)
    command = "train.txt test.txt --gpu -1 --model m --state s --log log"
    assert main(command.split()) == 130
    assert messages()[-1] == "to continue, run: make train"


def test_under_make_a_complete_run_is_not_trained_further(folder, small, monkeypatch, capsys):
    files = "--model m --state s --log log"
    call(f"{files} --iterations 2")
    before = Path("m").read_bytes(), Path("s").read_bytes()
    with monkeypatch.context() as make:
        make.setenv("PYDLSHOGI_CONTINUE", "make train")
        call(f"{files} --epoch 1 -m m -r s")
    assert messages()[-1] == "the run is complete"
    assert (Path("m").read_bytes(), Path("s").read_bytes()) == before
    capsys.readouterr()
    call(f"{files} --iterations 1 -m m -r s")
    assert "the resumed run was complete; it is trained further" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["__init__", "forward"])
def test_a_network_of_the_user_that_ends_the_program_is_one_sentence(folder, method):
    code = f"""
        import sys
        from pydlshogi.network.policy import PolicyNetwork
        class Mine(PolicyNetwork):
            def {method}(self, *arguments):
                sys.exit(0)
    """
    file = Path(f"ends_in{method}.py").resolve()
    file.write_text(textwrap.dedent(code))
    words = f"train.txt test.txt --network {file} --gpu -1 --model m --state s --log log"
    assert main(words.split()) == 1
    error = f"the file {file}, line 6, ends the program."
    assert messages()[-1] == f"{error} Let it raise an error instead."


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no file that is always full")
def test_a_log_on_a_full_disk_is_status_1_and_the_files_are_saved(folder, small, capsys):
    words = "train.txt test.txt --iterations 2 --gpu -1 --model m --state s --log /dev/full"
    assert main(words.split()) == 1
    assert "the log /dev/full is incomplete (No space left on device)" in capsys.readouterr().err
    assert read_npz("s")["t"] == 2 and Path("m").exists()


def test_on_windows_the_hint_has_double_quotes_which_cmd_knows(
    folder, small, interrupt, monkeypatch
):
    monkeypatch.setattr(train, "_ON_WINDOWS", True)
    interrupt(2)
    command = r"train.txt test.txt --gpu -1 --state run\s --log log"
    assert main([*command.split(), "--model", r"a run\m"]) == 130
    assert messages()[-1] == (
        r'to continue, add --initmodel "a run\m" --resume run\s to the same command'
    )


@pytest.mark.long
def test_the_same_seed_gives_the_same_files(folder):
    for name in ("one", "other"):
        call(f"--iterations 2 -b 4 --model {name} --state {name}.state --seed 3")
    assert_same_files("one", "other")


def test_a_run_begun_anew_keeps_what_it_replaces(folder, small):
    call("--iterations 3 --model m --state s --seed 4")
    call("--iterations 1 --model m --state s -m m -r s --log log")
    assert not Path("m.old").exists()
    assert not any("exists already" in message for message in messages())
    resumed = Path("m").read_bytes()
    call("--iterations 1 --model m --state s --log log --seed 5")
    assert "m exists already; its content is kept as m.old" in messages()
    anew = Path("m").read_bytes()
    assert Path("m.old").read_bytes() == resumed != anew
    assert Path("s.old").exists()
    # Back to what was kept: it stays as it is, and so does what was begun by mistake.
    call("--iterations 1 --model m --state s -m m.old -r s.old")
    assert Path("m.old").read_bytes() == resumed
    assert Path("m.old2").read_bytes() == anew
    # A model alone to start from is replaced as well.
    further = Path("m").read_bytes()
    call("--iterations 1 --model m --state s -m m")
    assert Path("m.old3").read_bytes() == further


def test_a_run_resumed_with_other_positions_keeps_its_place(folder, small):
    call("--iterations 2 -b 4 --model m --state s")
    place = Path("m").read_bytes(), Path("s").read_bytes()
    games = Path("train.txt").read_text()
    Path("train.txt").write_text("".join(games.splitlines(keepends=True)[:1]))
    call("--iterations 1 -b 4 --model m --state s -m m -r s --log log")
    assert "m exists already; its content is kept as m.old" in messages()
    assert (Path("m.old").read_bytes(), Path("s.old").read_bytes()) == place
    Path("train.txt").write_text(games)
    call("--iterations 1 -b 4 --model m --state s -m m.old -r s.old --log again")
    assert not any("starts again" in message for message in messages("again"))


def test_where_only_the_model_goes_on_in_place_the_pair_is_kept(folder, small):
    call("--iterations 3 --model m --state s")
    earlier = Path("m").read_bytes()
    call("--iterations 1 --model m --state other -m m -r s --log log")
    assert Path("m").read_bytes() != Path("m.old").read_bytes() == earlier
    assert "m exists already; its content is kept as m.old" in messages()
    call("--iterations 1 --model m --state other -m m.old -r s")


def test_a_model_that_a_killed_save_of_another_state_has_left_is_kept(folder, small):
    call("--iterations 1 --model m --state s")
    call("--iterations 2 --model m2 --state s2")
    # The save into m and s2 was killed before its last step.
    finished = Path("m2").read_bytes()
    Path("m2").rename("m.next")
    call("--iterations 1 --model m --state s --log log")
    assert "m.next exists already; its content is kept as m.next.old" in messages()
    assert Path("m.next.old").read_bytes() == finished
    call("--iterations 1 --model m3 --state s3 -m m.next.old -r s2")


def test_where_only_the_state_goes_on_in_place_the_pair_is_kept(folder, small):
    call("--iterations 3 --model m --state s")
    call("--iterations 1 --model other --state s -m m -r s")
    call("--iterations 1 --model other --state s -m m -r s.old")


def test_a_run_begun_anew_keeps_a_pair_whose_save_was_killed(folder, small, monkeypatch):
    call("--iterations 2 --model m --state s")
    replace = os.replace

    def killed(source, target):
        if os.path.basename(target) == "m":
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        words = "train.txt test.txt --gpu -1 --iterations 3 --model m --state s -m m -r s"
        assert main(words.split()) == 130
    assert Path("m.next").exists()
    call("--iterations 1 --model m --state s")
    call("--iterations 1 --model m2 --state s2 -m m.old -r s.old")
    assert read_npz("s2")["t"] == 6


RESNET = "--network policy_value_resnet --iterations 1 -b 4 --test_batchsize 4"


def test_a_size_that_is_not_the_models_is_told(folder, capsys):
    call(f"{RESNET} --channels 4 --blocks 2 --model m --state s --iterations 1")
    words = f"train.txt test.txt --gpu -1 {RESNET} --channels 8 -m m -r s --model m --state s"
    assert main(words.split()) == 1
    error = capsys.readouterr().err
    assert "model file m has 4 channels, not 8. Give the same channels, or none." in error


@pytest.mark.long
@pytest.mark.parametrize("before", [None, "--channels 8 --blocks 1"])
def test_a_first_save_killed_before_its_last_step_is_continued(folder, before):
    # The file at the model's path may be missing, or an earlier model of other sizes.
    if before:
        call(f"{RESNET} {before} --model earlier --state s")
    call(f"{RESNET} --channels 4 --blocks 2 --model m --state s")
    os.replace("m", "m.next")
    if before:
        os.replace("earlier", "m")
    call(f"{RESNET} --model m --state s -m m -r s")
    assert not Path("m.next").exists()
    assert read_npz("s")["t"] == 2
    assert read_npz("m")["l1/W"].shape[0] == 4


@pytest.fixture
def interrupt(monkeypatch):
    """Ends runs by Ctrl-C in the training pass of that number, also where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def at(number):
        passes, forward = [], SmallNetwork.forward

        def signalled(self, x):
            if chainer.config.train:
                passes.append(x)
                if len(passes) == number:
                    signal.raise_signal(signal.SIGINT)
            return forward(self, x)

        monkeypatch.setattr(SmallPolicy, "forward", signalled)

    yield at
    signal.signal(signal.SIGINT, before)


@pytest.mark.long
@pytest.mark.parametrize(
    "end, number, added",
    [
        ("--epoch 3", 2, ""),
        ("--epoch 3", 6, " --epoch 2"),
        ("--epoch 2", 5, ""),  # the validation of the first epoch is to do
        ("--epoch 1", 5, ""),
        ("--iterations 5", 5, " --iterations 1"),
        ("--iterations 7", 3, " --iterations 4"),
        ("--epoch 2 --iterations 9", 6, " --epoch 1 --iterations 3"),
    ],
)
def test_the_hint_after_ctrl_c_leads_to_the_planned_end(
    folder, small, interrupt, end, number, added
):
    # Positions for five batches: an interruption in the fifth iteration ends an epoch too.
    size = -(-len(read_kifu("train.txt")) // 5)
    words = [
        *f"train.txt test.txt --gpu -1 --seed 3 -b {size} --log log".split(),
        *f"--lr_schedule cosine --momentum 0.9 {end}".split(),
    ]
    files = ["--model", "a run/m", "--state", "s"]
    assert main([*words, "--model", "whole", "--state", "whole.s"]) == 0
    interrupt(number)
    assert main([*words, *files]) == 130
    hint = messages()[-1]
    assert hint == (f"to continue, add --initmodel 'a run/m' --resume s{added} to the same command")
    options = shlex.split(hint.partition(" add ")[2].partition(" to the ")[0])
    interrupt(0)
    assert main([*words, *files, *options]) == 0
    assert_same_files("whole", "a run/m")
    assert "rate is 0" not in Path("log").read_text(encoding="utf-8")


def test_without_a_first_iteration_there_is_no_hint(folder, small, interrupt, monkeypatch):
    begin = chainer.training.Trainer.run

    def signalled(self, **options):
        signal.raise_signal(signal.SIGINT)
        begin(self, **options)

    monkeypatch.setattr(chainer.training.Trainer, "run", signalled)
    assert (
        main(
            ["train.txt", "test.txt", "--gpu", "-1", "--model", "m", "--state", "s", "--log", "log"]
        )
        == 130
    )
    assert messages()[-1].startswith("interrupted before the first iteration")
    assert not Path("s").exists()


def test_what_cannot_be_resumed_and_what_differs_is_told_before_records_are_read(
    folder, small, capsys
):
    call("--iterations 2 --model m --state s")
    words = "train.txt test.txt --gpu -1 --iterations 2 --model m --state s -m m -r s --log log"
    assert main([*words.split(), "--momentum", "0.9"]) == 1
    assert "the same momentum and value_head_only as before" in capsys.readouterr().err
    assert len(messages()) == 1
    call("--iterations 2 --model m --state s -m m -r s --log log -b 20")
    told = messages().index(
        "another option than in the resumed run: batchsize was 32 and is 20 now"
    )
    assert told < messages().index("read kifu start")


@pytest.mark.long
def test_a_run_that_is_resumed_needs_no_layer_for_its_first_weights(folder, capsys):
    words = "--network policy_value_small --iterations 1 -b 2 --test_batchsize 2 --dirac"
    words = f"{words} --model m --state s"
    assert main(["train.txt", "one.txt", "--gpu", "-1", *words.split()]) == 1
    assert "outside of residual blocks, and policy_value_small has none" in capsys.readouterr().err
    # As versions before this one could begin policy_value_resnet.
    game = Path("test.txt").read_text(encoding="utf-8").splitlines()[0]
    Path("one.txt").write_text(game, encoding="utf-8")
    begin = words.replace("--dirac", "")
    assert main(["train.txt", "one.txt", "--gpu", "-1", *begin.split()]) == 0
    assert main(["train.txt", "one.txt", "--gpu", "-1", *words.split(), "-m", "m", "-r", "s"]) == 0


def test_name_convolution_and_threads_reach_the_network(folder, monkeypatch):
    asked = []

    def make_network(name):
        asked.append((name, get_convolution(), get_threads()))
        return SmallPolicy()

    monkeypatch.setattr(run, "make_network", make_network)
    try:
        call("--iterations 1 --network policy_bn --convolution chainer --threads 3")
    finally:
        set_threads(None)
        set_convolution("auto")
    assert asked == [("policy_bn", "chainer", 3)]


def test_resumed_runs_end_where_one_run_does(folder, small):
    files = "--model m --state s --log log -i 5 -b 8"
    call(f"{files} --seed 2 -e 2")
    whole = SmallPolicy()
    chainer.serializers.load_npz("m", whole)
    (expected,) = read_log(messages())
    Path("log").unlink()
    call(f"{files} --seed 2 --iterations 13")
    call(f"{files} -m m -r s -e 2")
    resumed = SmallPolicy()
    chainer.serializers.load_npz("m", resumed)
    assert_same_parameters(whole, resumed)
    (curve,) = read_log(messages())
    assert curve.progress == expected.progress
    assert curve.epochs[-2:] == expected.epochs
    start = messages().index("Load model from m")
    assert messages()[start : start + 4] == [
        "Load model from m",
        "Load optimizer state from s",
        "resume after iteration 13",
        "read kifu start",
    ]


@pytest.mark.parametrize(
    "wrong", ["train.txt test.txt -m m -r train.txt", "train.txt no -m m -r s"]
)
def test_a_run_after_a_resume_that_failed_has_a_curve_of_its_own(folder, small, wrong):
    files = "--model m --state s --log log -i 2"
    call(f"{files} --iterations 4")
    assert main(f"{wrong} --gpu -1 {files}".split()) == 1
    call(f"{files} --iterations 2")
    first, second = read_log(messages())
    assert [point.iteration for point in first.progress] == [2, 4]
    assert [point.iteration for point in second.progress] == [2]


def test_a_model_alone_starts_at_iteration_0(folder, small):
    call("--iterations 3 --model m --state s")
    call("--iterations 1 -i 1 --model m --state s -m m --log log")
    assert any("epoch = 1, iteration = 1, loss" in message for message in messages())


def test_a_seed_that_is_not_the_resumed_runs_is_passed_over(folder, small):
    call("--iterations 3 --model m --state s --seed 4")
    call("--iterations 3 --model m --state s --seed 5 -m m -r s --log log")
    assert any(message.startswith("seed 5 is ignored") for message in messages())
    # Nor does it matter whether the list is still the same.
    lines = Path("train.txt").read_text(encoding="utf-8").splitlines()
    Path("train.txt").write_text("\n".join(lines[1:]), encoding="utf-8")
    for seed in ("--seed 5", ""):
        call(f"--iterations 1 --model m --state s {seed} -m m -r s --log log")
        assert read_npz("s")[f"{OWN}place/seed"] == 4


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_list_from_a_pipe_is_read_once(folder, small):
    # As in: train_policy.py <(find games -name "*.csa") test.txt
    content = Path("train.txt").read_bytes()
    os.mkfifo("pipe.txt")
    writer = threading.Thread(target=lambda: Path("pipe.txt").write_bytes(content), daemon=True)
    writer.start()
    options = "--iterations 1 --model m --state s --log log --gpu -1"
    assert main(["pipe.txt", "test.txt", *options.split()]) == 0
    assert "train: 3 records, 3 used" in " ".join(messages())


def test_records_left_out_are_counted_and_listed(folder, small):
    bad = folder / "bad.csa"
    bad.write_text("V2.2\nN+a\nN-b\nPI\n+\n+9999FU\n%TORYO\n")
    with (folder / "train.txt").open("a") as file:
        file.write("bad.csa\nmissing.csa\n")
    with (folder / "test.txt").open("a") as file:
        file.write("bad.csa\n")
    call("--iterations 1 --model m --state s --log log --report out/left_out.tsv")
    assert "train: left out: 2" in messages()
    rows = (folder / "out" / "left_out.tsv").read_text(encoding="utf-8").splitlines()
    cells = [row.split("\t") for row in rows[1:]]
    assert sorted((cell[1], cell[-1].rpartition(" (")[2]) for cell in cells) == [
        ("bad.csa", "test list)"),
        ("bad.csa", "train list)"),
        ("missing.csa", "train list)"),
    ]


ERRORS = {
    "train position list": ("missing.txt test.txt", "missing.txt"),
    "test position list": ("train.txt missing.txt", "missing.txt"),
    "empty list": ("empty.txt test.txt", "empty.txt"),
    "list of nothing": ("nothing.txt test.txt", "nothing.txt"),
    "model": ("train.txt test.txt -m missing", "missing"),
    "not a model": ("train.txt test.txt -m train.txt", "train.txt"),
    "state": ("train.txt test.txt -m good -r missing", "missing"),
    "not a state": ("train.txt test.txt -m good -r train.txt", "train.txt"),
    "model as state": ("train.txt test.txt -m good -r good", "--resume are the same file, good."),
    "another model as state": ("train.txt test.txt -m good -r copy", "copy holds no state"),
    "same file": ("train.txt test.txt --model a --state a", "--state a"),
    "model that waits": ("train.txt test.txt --model a --state a.next", "--model's new file"),
    "state over model": ("train.txt test.txt -m good --state good", "--initmodel"),
    "log over model": ("train.txt test.txt -m good --log good", "the log good exists and is not"),
    "model over state": ("train.txt test.txt -m good -r state --model state", "--resume"),
    "folder": ("train.txt test.txt --model train.txt/model", "train.txt"),
    "log": ("train.txt test.txt --log train.txt", "the log train.txt exists"),
    "gpu": ("train.txt test.txt --gpu 99", "99"),
    "folder as list": (". test.txt", "kifu list ."),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_go_on_gets_one_sentence(folder, small, capsys, name):
    words, named = ERRORS[name]
    (folder / "empty.txt").write_text("")
    (folder / "nothing.txt").write_text("nowhere.csa\n")
    chainer.serializers.save_npz("good", SmallPolicy())
    good = Path("good").read_bytes()
    Path("copy").write_bytes(good)
    assert main([*words.split(), "--iterations", "1"]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert named in errors[-1]
    assert "error" in errors[-1].lower()
    assert "Traceback" not in "".join(errors)
    # Nothing was begun: no file is there that a run leaves, and none has changed.
    assert not list(folder.glob("model/*"))
    assert Path("good").read_bytes() == good


def test_a_training_that_diverges_leaves_the_pair_as_it_was(folder, small, capsys):
    call("--iterations 2 -i 2 --model m --state s")
    before = Path("m").read_bytes(), Path("s").read_bytes()
    words = "train.txt test.txt --gpu -1 --model m --state s -m m -r s --iterations 8 -i 2"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main([*words.split(), "--lr", "1e38"]) == 1
    message = capsys.readouterr().err.splitlines()[-1]
    assert "the training diverged: loss or weights are not finite at iteration 4" in message
    assert "Lower the learning rate." in message
    assert (Path("m").read_bytes(), Path("s").read_bytes()) == before
    assert not list(folder.glob("m.next"))


def test_a_model_that_is_not_finite_is_no_model_to_start_from(folder, small, capsys):
    network = SmallPolicy()
    network.layer.b.array[3] = float("nan")
    chainer.serializers.save_npz("nan", network)
    assert main(["train.txt", "test.txt", "-m", "nan"]) == 1
    assert "model file nan holds numbers that are not finite" in capsys.readouterr().err


def test_memory_that_does_not_suffice_gets_one_sentence(folder, small, capsys, monkeypatch):
    def allocate(*args):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr(SmallPolicy, "forward", allocate)
    assert main(["train.txt", "test.txt", "--gpu", "-1", "--iterations", "1"]) == 1
    message = capsys.readouterr().err.splitlines()[-1]
    assert "not enough memory (Unable to allocate 9 TiB). Lower --batchsize" in message


def test_a_full_disk_names_the_file_and_how_to_go_on(folder, small, capsys, monkeypatch):
    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    call("--iterations 1 --model m --state s")
    monkeypatch.setattr(os, "fsync", full_disk)
    options = "--gpu -1 --iterations 1 --model m --state s"
    assert main(["train.txt", "test.txt", *options.split(), "-m", "m", "-r", "s"]) == 1
    assert capsys.readouterr().err.endswith(
        "m.next cannot be written: No space left on device. "
        "Free some space and continue with --initmodel m --resume s.\n"
    )
    earlier = Path("m").read_bytes()
    assert main(["train.txt", "test.txt", *options.split()]) == 1
    assert capsys.readouterr().err.endswith(
        "m exists already and cannot be copied to m.old (No space left on device). "
        "Free some space.\n"
    )
    assert Path("m").read_bytes() == earlier


def test_a_run_that_never_saved_is_not_told_to_continue_an_earlier_one(
    folder, small, capsys, monkeypatch
):
    call("--iterations 1 --model m --state s")

    def save_model(path, network):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(checkpoint, "save_model", save_model)
    options = "--gpu -1 --iterations 1 --model m --state s"
    assert main(["train.txt", "test.txt", *options.split()]) == 1
    assert capsys.readouterr().err.endswith(
        "m.next cannot be written: No space left on device. Free some space.\n"
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_the_files_of_a_resumed_run_keep_their_permissions(folder, small):
    call("--iterations 1 --model m --state s")
    for name in ("m", "s"):
        os.chmod(name, 0o600)
    call("--iterations 1 --model m --state s -m m -r s")
    assert [os.stat(name).st_mode & 0o777 for name in ("m", "s")] == [0o600, 0o600]


@pytest.mark.parametrize("name", ["missing.txt", "empty.txt"])
def test_a_wrong_test_list_is_told_before_the_training_games_are_read(folder, small, capsys, name):
    (folder / "empty.txt").write_text("")
    assert main(["train.txt", name]) == 1
    assert name in capsys.readouterr().err
    assert not (folder / "train.pickle").exists()


def test_a_number_of_threads_of_the_environment_gets_one_sentence(
    folder, small, capsys, monkeypatch
):
    monkeypatch.setenv("PYDLSHOGI_THREADS", "many")
    assert main(["train.txt", "test.txt"]) == 1
    assert "PYDLSHOGI_THREADS" in capsys.readouterr().err.splitlines()[-1]


def program(*words):
    return [sys.executable, str(REPOSITORY / "train_policy.py"), *words]


def test_help_imports_nothing_heavy(folder):
    code = "import sys; from pydlshogi.commands.train_policy import main\n"
    code += "try: main(['--help'])\nfinally: "
    code += "assert not {'chainer', 'cupy'} & set(sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True)


@pytest.mark.parametrize("module", ["argparse", "numpy", "chainer"])
def test_ctrl_c_during_an_import_ends_without_a_traceback(folder, module):
    # A module of that name comes first in the path, and is interrupted.
    (folder / "first").mkdir()
    (folder / "first" / f"{module}.py").write_text("raise KeyboardInterrupt\n")
    done = subprocess.run(
        program("train.txt", "test.txt"),
        env={**os.environ, "PYTHONPATH": str(folder / "first")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 130
    assert len(done.stderr.splitlines()) <= 1 and "Traceback" not in done.stderr


def test_sigterm_while_records_are_read_removes_what_was_unpacked(folder, monkeypatch):
    pytest.importorskip("py7zr")
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "unpacked"))
    (folder / "unpacked").mkdir()
    unpacked = []

    def extract(archive, path):
        unpacked.append(path)
        (Path(path) / "half.csa").touch()
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("py7zr.SevenZipFile.__init__", lambda self, path: None)
    monkeypatch.setattr("py7zr.SevenZipFile.__exit__", lambda self, *error: None)
    monkeypatch.setattr("py7zr.SevenZipFile.list", lambda self: [])
    monkeypatch.setattr("py7zr.SevenZipFile.extractall", extract)
    (folder / "games.7z").touch()
    (folder / "archive.txt").write_text("games.7z\n")
    words = "archive.txt test.txt --gpu -1 --model m --state s --log log"
    assert main(words.split()) == 143
    assert len(unpacked) == 1 and not os.path.exists(unpacked[0])
    assert "interrupted" in Path("log").read_text()


@pytest.mark.skipif(os.name == "nt", reason="no such signals on Windows")
@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_program_with_one_sentence_and_its_status(folder, number, status):
    words = "train.txt test.txt --gpu -1 -b 2 -i 1 --test_batchsize 1 --model m --state s"
    words += " --channels 8"
    process = subprocess.Popen(
        program(*words.split()),
        stderr=subprocess.PIPE,
        text=True,
        # Whoever started the tests may ignore the signal, and so would the program.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    for line in process.stderr:
        if "iteration = 1," in line:
            break
    process.send_signal(number)
    errors = process.communicate()[1].splitlines()
    assert process.returncode == status
    assert "interrupted after iteration" in errors[-2]
    assert errors[-1].endswith("to continue, add --initmodel m --resume s to the same command")
    assert "Traceback" not in "".join(errors)
    call("--iterations 1 --model m --state s -m m -r s")


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="no such terminals on Windows")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("log", ["", "--log log"])
def test_a_terminal_that_is_closed_ends_the_program_after_it_has_saved(
    folder, log, unbuffered, monkeypatch
):
    import pty

    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    words = "train.txt test.txt --gpu -1 -b 2 -i 1 --test_batchsize 1 --model m --state s"
    command = program(*words.split(), *log.split())
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.execv(command[0], command)
    output = b""
    while b"iteration = 2," not in output:
        output += os.read(terminal, 10000)
    os.kill(pid, signal.SIGHUP)  # a shell sends it, too
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 129
    call("--iterations 1 --model m --state s -m m -r s")


def test_a_training_list_that_is_the_test_list_is_a_warning(folder, small):
    words = "train.txt ./train.txt --gpu -1 --iterations 1 --model m --state s --log log"
    assert main(words.split()) == 0
    assert any(
        message.startswith("the training list is also the test list") for message in messages()
    )
    Path("log").unlink()
    call("--iterations 1 --model m --state s --log log")
    assert not any("is also the test list" in message for message in messages())


@pytest.mark.parametrize("locked", ["m", "s", "log"])
def test_a_second_run_on_the_same_files_is_told_of_the_first(folder, small, capsys, locked):
    with lock_outputs(locked):
        words = "train.txt test.txt --gpu -1 --iterations 1 --model m --state s --log log"
        assert main(words.split()) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("train_policy: error: another run (process ")
    assert not Path("s").exists()
