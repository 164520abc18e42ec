"""A machine with a GPU that lacks cshogi, Chainer or the internet."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from gpu_parts import parts

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "gpu"

WITH_BASH = pytest.mark.skipif(
    os.name == "nt" or not shutil.which("bash"), reason="the script needs bash"
)

CHECK = """
import sys
from pathlib import Path
import carried
folder = Path("run/gpu")
folder.mkdir(parents=True)
(folder / "table.md").write_text(" ".join(sys.argv[1:]))
(folder / "model").write_bytes(bytes(range(256)) * 10)
sys.exit(1)
"""


@pytest.mark.slow
def test_the_tests_of_the_gpu_can_be_collected_without_cshogi(tmp_path):
    (tmp_path / "without_cshogi.py").write_text("import sys; sys.modules['cshogi'] = None")
    folders = [str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, "-m", "pytest", "-p", "without_cshogi", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, "-q", "--collect-only", "-m", "gpu and not slow", *parts._TESTS],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    assert "test_training_values.py" in result.stdout


@pytest.fixture
def clone(tmp_path):
    """A folder with the script, a check that only notes its options, and a carried package."""
    for folder in (".ci", ".whl", "benchmarks"):
        (tmp_path / folder).mkdir()
    shutil.copy(SCRIPT, tmp_path / ".ci")
    (tmp_path / "benchmarks" / "gpu_check.py").write_text(CHECK)
    info = "carried-1.dist-info"
    with zipfile.ZipFile(tmp_path / ".whl" / "carried-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("carried.py", "")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: carried\nVersion: 1\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return tmp_path


def run(clone, *arguments, **variables):
    return subprocess.run(
        ["bash", str(clone / ".ci" / "gpu"), *arguments],
        env={**os.environ, "PYTHON": sys.executable, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.long
@WITH_BASH
def test_the_script_installs_what_was_carried_and_packs_the_results(clone, tmp_path):
    with tarfile.open(clone / ".whl" / "games.tar.xz", "w:xz") as archive:
        for name in ("train", "test"):
            path = tmp_path / f"games_{name}.txt"
            path.write_text("game.csa\n")
            archive.add(path, f"lists/{path.name}")
    out = tmp_path / "out"
    out.mkdir()
    result = run(clone, "run", "--minutes", "8", OUT=str(out))
    assert result.returncode == 1, result.stderr  # the status of the check
    packed = b"".join(path.read_bytes() for path in sorted(out.iterdir()))
    (tmp_path / "packed.tgz").write_bytes(packed)
    with tarfile.open(tmp_path / "packed.tgz") as archive:
        options = archive.extractfile("gpu/table.md").read().decode()
        assert len(archive.extractfile("gpu/model").read()) == 2560
    lists = "--kifulist_train lists/games_train.txt --kifulist_test lists/games_test.txt"
    assert options == f"{lists} --minutes 8"
    assert "cshogi does not fit this Python" in result.stderr


@pytest.mark.long
@WITH_BASH
def test_without_an_archive_and_a_folder_the_options_are_passed_alone(clone):
    environment = {"OUT": ""}
    assert run(clone, "run", "--gpu", "-1", **environment).returncode == 1
    assert (clone / "run" / "gpu" / "table.md").read_text() == "--gpu -1"


PIP = """
import sys, tarfile
if sys.argv[2] == "tarfile":
    print(*tarfile.open(sys.argv[4]).getnames(), sep="\\n")
else:
    assert sys.argv[2] == "pip"
    option, name = {"wheel": ("--wheel-dir", "new"), "download": ("--dest", "board")}[sys.argv[3]]
    open(f"{sys.argv[sys.argv.index(option) + 1]}/{name}.whl", "w").close()
"""


@pytest.fixture
def python(tmp_path):
    """A Python that downloads nothing."""
    (tmp_path / "pip.py").write_text(PIP)
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tmp_path / "pip.py"}" "$@"\n')
    path.chmod(0o755)
    return str(path)


def games_with(path, *names):
    with tarfile.open(path, "w:xz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))


@WITH_BASH
def test_prepare_takes_the_archive_of_the_folder_in_which_it_was_called(clone, python, monkeypatch):
    (clone / "elsewhere").mkdir()
    monkeypatch.chdir(clone / "elsewhere")
    games_with("games.tar.xz", "lists/a_train.txt", "lists/a_test.txt", "a.csa")
    content = Path("games.tar.xz").read_bytes()
    for archive in ("games.tar.xz", "../.whl/games.tar.xz"):  # then the one that it made
        result = run(clone, "prepare", archive, PYTHON=python)
        assert result.returncode == 0, result.stderr
        names = sorted(path.name for path in (clone / ".whl").iterdir())
        assert names == ["board.whl", "games.tar.xz", "new.whl"]
        assert (clone / ".whl" / "games.tar.xz").read_bytes() == content


@WITH_BASH
@pytest.mark.parametrize("names", [(), ("lists/a_train.txt", "lists/b_train.txt")])
def test_prepare_refuses_an_archive_without_its_lists_and_keeps_the_folder(clone, python, names):
    games_with(clone / "games.tar.xz", "lists/a_test.txt", *names)
    before = sorted((clone / ".whl").iterdir())
    result = run(clone, "prepare", str(clone / "games.tar.xz"), PYTHON=python)
    assert result.returncode == 1 and "one file lists/*_train.txt" in result.stderr
    assert run(clone, "prepare", str(clone / "missing"), PYTHON=python).returncode == 1
    assert sorted((clone / ".whl").iterdir()) == before


@WITH_BASH
def test_without_a_command_the_script_explains_itself():
    result = subprocess.run(["bash", str(SCRIPT)], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert ".ci/gpu prepare [ARCHIVE]" in result.stdout and "set -e" not in result.stdout
