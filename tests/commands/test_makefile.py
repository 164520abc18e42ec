"""``make train`` and its relatives, with a Python that only pretends to train."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")

#: Notes its arguments. To "train", it waits if told so, and ends as told.
PYTHON = """#!/bin/sh
echo "$@" >>calls.txt
echo "$PYDLSHOGI_CONTINUE" >>continue.txt
case "$3" in
train_kifu)
    if test -e wait; then trap 'exit 130' INT; touch waiting; while :; do sleep 0.05; done; fi
    if test -e status; then exit "$(cat status)"; fi ;;
esac
"""


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone whose .venv is ready."""
    # Under `make test`, a make started here would take itself for a part of that one.
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "clone"
    stamps = folder / ".venv"
    (stamps / "bin").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, folder / name)
    python = stamps / "bin" / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    for name in (".setuptools", ".for-train", ".for-test"):
        (stamps / name).touch()
    return folder


def make(clone, *targets, **options):
    return subprocess.run(
        ["make", *targets], cwd=clone, capture_output=True, text=True, timeout=60, **options
    )


def calls(clone):
    return (clone / "calls.txt").read_text().splitlines()


@pytest.mark.parametrize(
    "target, options, again",
    [
        ("train", "", "train"),
        ("train-book", " --recipe book", "train-book"),
        ("train-value", " --recipe value", "train-value"),
        ("retrain", " --restart", "train"),
    ],
)
def test_make_trains_by_the_program_of_all_systems(clone, target, options, again):
    result = make(clone, target)
    assert (result.returncode, result.stderr) == (0, "")
    assert calls(clone) == [f"-m pydlshogi train_kifu{options}"]
    assert (clone / "continue.txt").read_text() == f"make {again}\n"


def test_make_trains_on_a_folder_of_the_user(clone):
    python = clone / ".venv" / "bin" / "python"
    python.write_text(PYTHON + "printf '<%s>' \"$@\" >words.txt\n")
    folder = "my games & 'more'"
    result = make(clone, "train-value", f"KIFU={folder}")
    assert (result.returncode, result.stderr) == (0, "")
    words = ["-m", "pydlshogi", "train_kifu", folder, "--recipe", "value"]
    assert (clone / "words.txt").read_text() == "".join(f"<{word}>" for word in words)
    assert (clone / "continue.txt").read_text() == f'make train-value KIFU="{folder}"\n'


@pytest.fixture
def with_gpu(clone, monkeypatch):
    """A PATH on which nvidia-smi lists a GPU."""
    folder = clone / "smi"
    folder.mkdir()
    smi = folder / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'GPU 0: a card'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_make_gpu_runs_the_check_in_a_python_that_has_the_packages(clone, with_gpu):
    result = make(clone, "gpu", "GPU_ARGS=--minutes 9")
    assert result.returncode == 0, result.stderr
    test, check = calls(clone)
    assert test.startswith("-c import pydlshogi.compat, cupy, ")
    assert check == "benchmarks/gpu_check.py --minutes 9"


def test_make_gpu_installs_what_is_missing(clone, with_gpu):
    python = clone / ".venv" / "bin" / "python"
    text = PYTHON + 'case "$1" in -c) exit 1 ;; esac\n'
    python.write_text(text)
    # A Python that lacks the packages too, so that .venv is used.
    result = make(clone, "gpu", "CUDA=cuda13", f"PYTHON={python}")
    assert result.returncode == 0, result.stderr
    install, search, board, check = calls(clone)[2:6]
    assert install.startswith("-m pip install ") and ".[cuda13,plot,7z]" in install
    assert search.startswith("-m pip install ") and search.endswith(" -e .[search]")
    assert board.startswith("-m pip install ") and "--no-deps cshogi" in board
    assert check == "benchmarks/gpu_check.py"
    assert (clone / ".venv" / ".for-gpu").exists()


def test_make_gpu_without_internet_needs_no_packages_of_the_tests(clone, with_gpu):
    python = clone / ".venv" / "bin" / "python"
    python.write_text(PYTHON + 'case "$*" in *pytest*) exit 1 ;; esac\n')
    result = make(clone, "gpu")
    assert result.returncode == 0
    assert [call.split()[0] for call in calls(clone)] == [
        "-c",
        "-m",
        "-c",
        "benchmarks/gpu_check.py",
    ]


@pytest.mark.skipif(
    bool(shutil.which("nvidia-smi")) or os.path.exists("/dev/nvidia0"), reason="has a GPU"
)
def test_make_gpu_says_in_one_sentence_that_there_is_no_gpu(clone):
    result = make(clone, "gpu")
    assert result.returncode == 2
    assert result.stdout == (
        "make gpu: this machine has no NVIDIA GPU, or its driver is not installed.\n"
    )
    assert not (clone / "calls.txt").exists()
    for rehearsal in ("--gpu -1", "-g -1", "-g-1", "--gpu=-1", "--minutes 3 --gpu  -1"):
        assert make(clone, "gpu", f"GPU_ARGS={rehearsal}").returncode == 0
        assert calls(clone)[-1] == "benchmarks/gpu_check.py " + rehearsal.replace("  ", " ")


def test_make_is_make_train(clone):
    assert make(clone).returncode == 0
    assert calls(clone) == ["-m pydlshogi train_kifu"]


def test_a_training_that_failed_fails(clone):
    (clone / "status").write_text("1")
    assert make(clone, "train").returncode == 2


def test_ctrl_c_ends_make_after_the_training(clone):
    (clone / "wait").touch()
    with subprocess.Popen(
        ["make", "train"],
        cwd=clone,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        end = time.monotonic() + 60
        while not (clone / "waiting").exists() and time.monotonic() < end:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode != 0


def test_make_help_names_every_public_target(clone):
    text = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", text, re.M)[1].split()
    result = make(clone, "help")
    assert {target for target in targets if f"make {target}" not in result.stdout} == {"help"}


def test_make_gui_test_prints_steps(clone):
    (clone / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "gui-test.txt", clone / ".ci")
    result = make(clone, "gui-test")
    assert result.returncode == 0
    for name in ("gshogi", "ShogiHome", "xboard"):
        assert name in result.stdout
