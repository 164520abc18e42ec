"""What plot_log draws, and what it does not overwrite."""

import codecs

import pytest

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure

from pydlshogi.commands.plot_log import main
from pydlshogi.training import log, plot

LINES = [log.START, *log.format_progress(log.ProgressPoint(1, 5, 8.0, 0.1))]


@pytest.mark.parametrize("output", ["log", "./log", "other"])
def test_a_log_is_not_overwritten_by_the_picture(tmp_path, monkeypatch, capsys, output):
    monkeypatch.chdir(tmp_path)
    for name in ("log", "other"):
        (tmp_path / name).write_text("\n".join(LINES))
    assert main(["log", "other", "-o", output]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"plot_log: error: --output {output} is a log.")
    for name in ("log", "other"):
        assert (tmp_path / name).read_text() == "\n".join(LINES)


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),  # PowerShell's 2>
        lambda text: codecs.BOM_UTF8 + text.encode(),
        lambda text: text.encode("cp932"),
        lambda text: text.encode() + b"\xff\n",
    ],
    ids=["UTF-16", "BOM", "CP932", "damaged"],
)
def test_a_log_is_read_in_any_encoding(tmp_path, encode):
    text = "".join(f"2024/01/01 00:00:00\tINFO\t{line}\r\n" for line in ["棋譜 表", *LINES])
    (tmp_path / "log").write_bytes(encode(text))
    assert main([str(tmp_path / "log"), "-o", str(tmp_path / "picture.png")]) == 0
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_names_stand_in_the_legend_as_they_are():
    (curve,) = log.read_log(LINES)
    names = ["_log", "$x^$", "cost $1", r"run\$a$"]
    figure = Figure(figsize=(13, 8), layout="constrained")
    plot.draw(figure, {name: curve for name in names})
    FigureCanvasAgg(figure).draw()
    for axes in figure.axes:
        texts = [text.get_text() for text in axes.get_legend().get_texts()]
        assert len(texts) == len(names)
        assert not any(map(is_math_text, texts))
        # An even number of dollar signs would be a formula; drawn, "\$" is "$".
        shown = [text.replace(r"\$", "$").strip().partition(": ")[0] for text in texts]
        assert shown == names
