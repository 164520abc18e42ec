"""Figures and their files."""

import sys
import warnings
from contextlib import nullcontext

import pytest

from pydlshogi.figure import DrawingError, check_picture, new_figure, save_figure


@pytest.mark.parametrize(
    "name, start",
    [("a.png", b"\x89PNG"), ("a", b"\x89PNG"), ("a.SVG", b"<?xml"), ("new/a.pdf", b"%PDF")],
)
def test_the_suffix_chooses_the_format_and_the_same_figure_gives_the_same_file(
    tmp_path, name, start
):
    pytest.importorskip("matplotlib")
    written = []
    for _ in range(2):
        figure = new_figure(2, 1)
        figure.subplots().plot([1, 2], [3, 5])
        save_figure(figure, tmp_path / name)
        written.append((tmp_path / name).read_bytes())
    assert written[0].startswith(start)
    assert written[0] == written[1]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_character_that_the_font_lacks_gives_no_warning(tmp_path, suffix):
    pytest.importorskip("matplotlib")
    figure = new_figure(2, 1)
    figure.suptitle("\U0001f3c6 a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_figure(figure, tmp_path / f"a{suffix}")
    assert (tmp_path / f"a{suffix}").exists()


@pytest.mark.parametrize("name", ["a.xyz", "file/a.png"])
def test_a_file_that_cannot_be_written_gets_one_sentence(tmp_path, name):
    pytest.importorskip("matplotlib")
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DrawingError, match=r"cannot be written .* Choose another file"):
        save_figure(new_figure(2, 1), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_model_is_not_replaced_by_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "model").write_bytes(b"PK\x03\x04")
    with pytest.raises(DrawingError, match="model exists already and is no picture"):
        save_figure(new_figure(2, 1), tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == b"PK\x03\x04"


def test_an_empty_file_and_a_picture_without_a_suffix_are_replaced(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "picture").touch()
    for width in (2, 3):
        save_figure(new_figure(width, 1), tmp_path / "picture")
        found = (tmp_path / "picture").read_bytes()
        assert int.from_bytes(found[16:20], "big") == 110 * width


def test_without_matplotlib_the_error_tells_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(DrawingError, match="Install it: python -m pip install matplotlib"):
        new_figure(2, 1)


@pytest.mark.parametrize(
    "name, refused", [("a.txt", True), ("a.pgf", True), ("a.png", False), ("a.PDF", False)]
)
def test_another_format_is_found_before_the_picture_is_drawn(tmp_path, name, refused):
    with (
        pytest.raises(DrawingError, match=r"its suffix is not \.png") if refused else nullcontext()
    ):
        check_picture(tmp_path / name)
