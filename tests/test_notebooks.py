"""The notebook: saved with its results, in both languages, and runnable from top to bottom."""

import base64
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).resolve().parent.parent
TOUR, COLAB = ROOT / "notebooks/tour.ipynb", ROOT / "notebooks/colab.ipynb"
both = pytest.mark.parametrize("notebook", [TOUR, COLAB], ids=lambda path: path.stem)


def read_cells(kind, notebook=TOUR):
    return [cell for cell in nbformat.read(notebook, 4).cells if cell.cell_type == kind]


@both
def test_the_notebook_is_valid_and_small(notebook):
    nbformat.validate(nbformat.read(notebook, 4))
    assert notebook.stat().st_size < 1 << 20


@both
def test_every_text_is_in_both_languages(notebook):
    for cell in read_cells("markdown", notebook):
        assert re.search("[A-Za-z]{4}", cell.source)
        assert re.search("[ぁ-んァ-ヶ一-龠]", cell.source)


def test_the_results_are_saved_without_errors_and_without_paths_of_the_author():
    cells = read_cells("code")
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    text = TOUR.read_text(encoding="utf-8")
    assert '"output_type": "error"' not in text
    assert str(ROOT.parent) not in text
    assert "/root" not in text


def test_the_pictures_are_saved():
    data = [output.get("data", {}) for cell in read_cells("code") for output in cell.outputs]
    pictures = [base64.b64decode(part["image/png"]) for part in data if "image/png" in part]
    boards = [part["image/svg+xml"] for part in data if "image/svg+xml" in part]
    assert len(pictures) + len(boards) >= 7
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert all(board.startswith("<svg") for board in boards)


def test_the_saved_network_has_learned():
    text = TOUR.read_text(encoding="utf-8")
    accuracies = re.findall(r"test accuracy = ([0-9.]+), ([0-9.]+)", text)
    assert float(accuracies[-1][0]) > 0.15


def install(folder, address):
    """Runs the cell of the installation in a folder; it prints the clone that it found."""
    pytest.importorskip("matplotlib_fontja")  # otherwise the cell would call pip
    source = read_cells("code")[0].source
    assert source.count('ADDRESS = ""') == 1
    source = source.replace('ADDRESS = ""', f"ADDRESS = {address!r}")
    return subprocess.run(
        [sys.executable, "-c", f"{source}\nprint(os.getcwd(), sys.path[0])"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_outside_of_a_clone_the_notebook_asks_for_the_address(tmp_path):
    result = install(tmp_path, "")
    assert result.returncode == 1
    assert result.stderr.startswith("Write the address of the repository into ADDRESS.")
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_outside_of_a_clone_the_notebook_clones_once(tmp_path):
    origin, folder = tmp_path / "origin", tmp_path / "elsewhere"
    (origin / "pydlshogi").mkdir(parents=True)
    (origin / "pydlshogi" / "launch.py").touch()
    folder.mkdir()
    git = ["git", "-C", str(origin), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    found = f"{folder / 'pydlshogi'} {folder / 'pydlshogi'}\n"
    for _ in range(2):  # the second time after a restart of the kernel
        result = install(folder, origin.as_uri())
        assert (result.returncode, result.stdout) == (0, found), result.stderr


def test_in_a_clone_the_notebook_needs_no_address(tmp_path):
    (tmp_path / "pydlshogi").mkdir()
    (tmp_path / "pydlshogi" / "launch.py").touch()
    (tmp_path / "notebooks").mkdir()
    result = install(tmp_path / "notebooks", "")
    assert (result.returncode, result.stdout) == (0, f"{tmp_path} {tmp_path}\n"), result.stderr


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("TOUR_ITERATIONS", "10")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(TOUR, 4)
    resources = {"metadata": {"path": str(ROOT / "notebooks")}}
    nbclient.NotebookClient(notebook, timeout=1200, resources=resources).execute()
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")


def test_five_cells_lead_from_a_clone_to_a_game():
    cells = read_cells("code", COLAB)
    assert len(cells) == 5
    assert cells[0].source.splitlines()[:-1] == read_cells("code")[0].source.splitlines()[:-2]
    assert cells[-1].source.startswith("board = pydlshogi.play()")
    assert not any(cell.outputs for cell in cells)  # an address of the past would lead nowhere


@pytest.mark.long
def test_the_notebook_for_playing_runs_from_top_to_bottom(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib_fontja")  # otherwise its first cell would call pip
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(COLAB, 4)
    resources = {"metadata": {"path": str(ROOT / "notebooks")}}
    nbclient.NotebookClient(notebook, timeout=600, resources=resources).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(
        any("image/svg+xml" in output.get("data", {}) for output in cell.outputs)
        for cell in cells[2:4]
    )
    (frame,) = [output.data["text/html"] for output in cells[4].outputs]
    assert re.search(r'src="http://127\.0\.0\.1:[0-9]+/', frame)
