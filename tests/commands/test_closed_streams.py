"""Every program with standard input, output or error closed, as daemons and GUIs start them."""

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import pydlshogi.commands
from pydlshogi.launch import python_path

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows opens all three files")

CLONE = Path(__file__).resolve().parents[2]

PROGRAMS = [
    name
    for _, name, _ in pkgutil.iter_modules(pydlshogi.commands.__path__)
    if hasattr(importlib.import_module(f"pydlshogi.commands.{name}"), "main")
]


def run(name, *words, closed="2>&-", **options):
    """Starts a program of ``commands`` with some standard streams closed."""
    code = f"import sys; from pydlshogi.commands.{name} import main; sys.exit(main(sys.argv[1:]))"
    shell = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", code, *words]
    environment = {**os.environ, "PYTHONPATH": python_path()}
    return subprocess.run(shell, stdout=subprocess.PIPE, text=True, env=environment, **options)


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_answers_help_without_standard_error(name):
    result = run(name, "--help", stdin=subprocess.DEVNULL)
    assert result.returncode == 0
    assert name in result.stdout


@pytest.mark.long
@pytest.mark.parametrize("closed", ["2>&-", "0<&- 2>&-", "0<&- 1>&- 2>&-"])
def test_programs_that_show_bars_work_with_closed_streams(tmp_path, closed):
    kifu = CLONE / "kifu"
    games = sorted(str(path) for path in kifu.rglob("*.csa"))[:2]
    (tmp_path / "list.txt").write_text("\n".join(games))
    for name, words, made in [
        ("convert_positions", ["list.txt", "a.hcpe"], "a.hcpe"),
        ("make_positions", ["list.txt", "shards"], "shards"),
        ("filter_csa", [str(Path(games[0]).parent), "--min_rating", "0", "--list", "l"], "l"),
        ("make_opening_book", ["list.txt", "a.db"], "a.db"),
    ]:
        result = run(name, *words, closed=closed, cwd=tmp_path)
        assert result.returncode == 0, name
        assert (tmp_path / made).exists()
        if "1>" not in closed:
            assert made in result.stdout


@pytest.mark.long
def test_a_training_without_standard_streams_keeps_its_lines_out_of_its_files(tmp_path):
    games = sorted(str(path) for path in (CLONE / "kifu").rglob("*.csa"))[:2]
    (tmp_path / "list.txt").write_text("\n".join(games))
    files = "--model m --state s --log log --gpu -1"
    words = f"list.txt list.txt --iterations 1 -b 2 {files}".split()
    assert run("train_policy", *words, closed="0<&- 1>&- 2>&-", cwd=tmp_path).returncode == 0
    words = ["m", "list.txt", "--gpu", "-1", "--tsv"]
    measured = run("evaluate_model", *words, cwd=tmp_path)
    assert measured.returncode == 0
    assert "top_1" in measured.stdout
