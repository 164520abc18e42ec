"""utils/plot_log.py: from logs to a picture."""

import itertools
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import open_file_cm
from matplotlib.figure import Figure

from pydlshogi.commands.plot_log import main
from pydlshogi.training import log, plot

REPOSITORY = Path(__file__).resolve().parents[2]


def write_log(path, *runs):
    """Writes a log of runs, each a list of iterations; every 10th ends an epoch."""
    lines = []
    for number, iterations in enumerate(runs):
        if number:
            lines.append(log.LOAD_STATE % "state")
        lines += [log.READ_START, log.START]
        for iteration in iterations:
            epoch = (iteration - 1) // 10 + 1
            lines += log.format_point(log.ProgressPoint(epoch, iteration, 8 / iteration, 0.1))
            if iteration % 10 == 0:
                point = log.EpochPoint(epoch, iteration, 4 / iteration, 0.2, 3 / iteration)
                lines += [log.VALIDATE, *log.format_point(point)]
    path.write_text("".join(f"2024/01/01 00:00:00\tINFO\t{line}\n" for line in lines))
    return path


def drawn(*logs):
    """The lines drawn, as (label, iterations, values) of the two axes."""
    figure = Figure()
    curves = {}
    for path in logs:
        (curve,) = log.read_log(path.open())
        curves[path.name] = curve
    plot.draw(figure, curves)
    return [
        [(line.get_label(), list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]
        for axes in figure.axes
    ]


def test_loss_and_accuracy_of_lines_and_of_epochs_are_drawn(tmp_path):
    loss, accuracy = drawn(write_log(tmp_path / "log", [5, 10, 15, 20]))
    assert loss == [
        ("training", [5, 10, 15, 20], pytest.approx([8 / 5, 8 / 10, 8 / 15, 8 / 20])),
        ("training, mean of the epoch", [10, 20], pytest.approx([0.4, 0.2])),
        ("test set", [10, 20], pytest.approx([0.3, 0.15])),
    ]
    assert accuracy == [
        ("some test positions", [5, 10, 15, 20], pytest.approx([0.1] * 4)),
        ("test set", [10, 20], pytest.approx([0.2] * 2)),
    ]


@pytest.mark.parametrize("count, marker", [(1, "."), (11, "None")])
def test_few_points_are_marked_since_one_makes_no_line(tmp_path, count, marker):
    (curve,) = log.read_log(write_log(tmp_path / "log", range(5, 5 * count + 1, 5)).open())
    figure = Figure()
    plot.draw(figure, {"log": curve})
    assert [axes.lines[0].get_marker() for axes in figure.axes] == [marker] * 2


def test_iterations_are_whole_numbers(tmp_path):
    (curve,) = log.read_log(write_log(tmp_path / "log", [1, 2]).open())
    figure = Figure()
    plot.draw(figure, {"log": curve})
    for axes in figure.axes:
        assert all(tick == round(tick) for tick in axes.get_xticks())


def test_a_resumed_log_is_one_curve(tmp_path):
    killed = write_log(tmp_path / "killed", [5, 10, 15], [15, 20])
    whole = write_log(tmp_path / "whole", [5, 10, 15, 20])
    assert drawn(killed) == drawn(whole)


def test_several_logs_are_in_one_picture_under_their_names(tmp_path):
    logs = [write_log(tmp_path / name, [5, 10]) for name in ("a", "b")]
    loss, accuracy = drawn(*logs)
    assert [label.partition(":")[0] for label, *_ in loss] == ["a"] * 3 + ["b"] * 3
    assert [label.partition(":")[0] for label, *_ in accuracy] == ["a"] * 2 + ["b"] * 2


def test_the_legend_of_several_logs_hides_no_curve(tmp_path):
    (curve,) = log.read_log(write_log(tmp_path / "log", [5, 10, 15, 20]).open())
    figure = Figure(figsize=(13, 8), layout="constrained")
    plot.draw(figure, {f"policy_hand1x1_{number}": curve for number in range(4)})
    FigureCanvasAgg(figure).draw()
    (legend,) = (axes.get_legend() for axes in figure.axes if axes.get_legend())
    assert legend.get_window_extent().y0 >= figure.axes[0].bbox.y1
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    assert all(axes.bbox.height > figure.bbox.height / 4 for axes in figure.axes)


@pytest.mark.long
@pytest.mark.parametrize("name", ["run{}", "a_long_folder/and_a_long_name/" * 4 + "{}", "棋譜{}"])
@pytest.mark.parametrize("count", [2, 8, 20])
def test_many_logs_of_two_heads_fit_into_the_picture(tmp_path, monkeypatch, name, count):
    points = [log.ProgressPoint(1, n, 4 / n, 0.1, 3 / n, 0.6, 0.6) for n in (1, 2)]
    (curve,) = log.read_log([log.READ_START, *itertools.chain(*map(log.format_point, points))])
    figures = []
    monkeypatch.setattr(plot, "save_figure", lambda figure, output: figures.append(figure))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot.save({name.format(n): curve for n in range(count)}, tmp_path / "x.png")
        FigureCanvasAgg(figures[0]).draw()
    axes = figures[0].axes
    assert len(axes) == 4
    legend = axes[0].get_legend().get_window_extent()
    title = figures[0]._suptitle.get_window_extent()
    assert title.y0 >= legend.y1 > legend.y0 >= axes[0].bbox.y1
    assert 0 <= legend.x0 < legend.x1 <= figures[0].bbox.x1
    assert all(one.bbox.height > 100 for one in axes)  # pixels, of 100 an inch


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names are always text there")
def test_names_that_are_no_text_are_drawn_with_question_marks(tmp_path):
    logs = [write_log(tmp_path / os.fsdecode(name), [5]) for name in (b"a\xff", b"b")]
    assert main([*map(str, logs), "-o", str(tmp_path / "a.png")]) == 0
    assert (tmp_path / "a.png").exists()
    loss, _ = drawn(*logs)
    assert {label.partition(":")[0] for label, *_ in loss} == {"a?", "b"}


@pytest.mark.long
@pytest.mark.parametrize("kind, start", [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_program_writes_a_picture_without_a_display(tmp_path, kind, start):
    logs = [write_log(tmp_path / name, [5, 10]) for name in ("a", "b")]
    output = tmp_path / "new" / f"picture.{kind}"
    subprocess.run(
        [sys.executable, REPOSITORY / "utils" / "plot_log.py", *logs, "--output", output],
        check=True,
        env={"PYTHONPATH": str(REPOSITORY), "HOME": str(tmp_path)},
    )
    assert output.read_bytes().startswith(start)


def test_a_picture_that_is_only_half_written_leaves_the_old_one(tmp_path, capsys, monkeypatch):
    output = tmp_path / "picture.png"
    logs = [str(write_log(tmp_path / "log", [5, 10]))]
    assert main([*logs, "--output", str(output)]) == 0
    whole = output.read_bytes()

    def full_disk(figure, target, **kwargs):
        with open_file_cm(target, "wb") as file:
            file.write(whole[:100])
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full_disk)
    assert main([*logs, "--output", str(output)]) == 1
    assert "picture.png" in capsys.readouterr().err
    assert output.read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "picture.png"]


def test_two_runs_in_one_log_have_two_curves(tmp_path, monkeypatch):
    path = write_log(tmp_path / "log", [5, 10])
    path.write_text(path.read_text() * 2)
    figures, savefig = [], Figure.savefig

    def watched(figure, *args, **kwargs):
        figures.append(figure)
        savefig(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", watched)
    assert main([str(path), "--output", str(tmp_path / "picture.svg")]) == 0
    # Of each run in the loss two marks and a line, in the accuracy a mark and a line.
    assert [len(axes.lines) for axes in figures[0].axes] == [6, 4]
    labels = [line.get_label().partition(":")[0] for line in figures[0].axes[1].lines]
    assert labels == ["log, run 1"] * 2 + ["log, run 2"] * 2


@pytest.mark.parametrize("content", [None, "", "no log of ours\n"])
def test_a_log_without_points_gets_one_sentence(tmp_path, capsys, content):
    path = tmp_path / "log"
    if content is not None:
        path.write_text(content)
    assert main([str(path), "--output", str(tmp_path / "picture.png")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line
    assert not (tmp_path / "picture.png").exists()


def test_a_picture_of_unknown_kind_gets_one_sentence(tmp_path, capsys):
    path = write_log(tmp_path / "log", [5])
    assert main([str(path), "--output", str(tmp_path / "picture.abc")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "picture.abc" in line


def test_without_a_display_a_window_gets_one_sentence(tmp_path, capsys, monkeypatch):
    import matplotlib

    matplotlib.use("agg")
    assert main([str(write_log(tmp_path / "log", [5]))]) == 1
    assert "Name a file for the picture." in capsys.readouterr().err


def test_values_have_axes_of_their_own(tmp_path):
    path = tmp_path / "log"
    lines = [log.READ_START]
    for iteration in (5, 10):
        lines += log.format_point(log.ProgressPoint(1, iteration, 8.7, 0.1, 8.0, 0.7, 0.5))
    lines += log.format_point(log.EpochPoint(1, 10, 8.75, 0.2, 7.625, 8, 0.75, 7, 0.625, 0.25))
    path.write_text("".join(f"{line}\n" for line in lines))
    axes = drawn(path, write_log(tmp_path / "policy", [5, 10]))
    assert [len(lines) for lines in axes] == [6, 4, 3, 2]
    assert [line[1:] for line in axes[2]] == [
        ([5, 10], pytest.approx([0.7, 0.7])),
        ([10], [0.75]),
        ([10], [0.625]),
    ]
    assert [line[1:] for line in axes[3]] == [([5, 10], [0.5, 0.5]), ([10], [0.25])]


def test_the_second_accuracy_of_a_log_of_the_books_is_drawn(tmp_path):
    path = tmp_path / "log"
    lines = [
        "epoch = 1, iteration = 100, loss = 8.25, accuracy = 0.25, 0.625",
        "epoch = 1, iteration = 200, train loss avr = 7.5, test accuracy = 0.5, 0.75",
    ]
    path.write_text("".join(f"2017/11/26 14:11:02\tINFO\t{line}\n" for line in lines))
    loss, accuracy, value_accuracy = drawn(path)
    assert accuracy == [("some test positions", [100], [0.25]), ("test set", [200], [0.5])]
    assert value_accuracy == [("some test positions", [100], [0.625]), ("test set", [200], [0.75])]
    assert [line[1:] for line in loss] == [([100], [8.25]), ([200], [7.5])]
