"""What plot_log draws, and what it does not overwrite."""

import codecs

import pytest

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure

from pydlshogi.commands.plot_log import main
from pydlshogi.training import log, plot

LINES = [log.START, *log.format_point(log.ProgressPoint(1, 5, 8.0, 0.1))]


@pytest.mark.parametrize("output", ["log", "./log", "other"])
def test_a_log_is_not_overwritten_by_the_picture(tmp_path, monkeypatch, capsys, output):
    monkeypatch.chdir(tmp_path)
    for name in ("log", "other"):
        (tmp_path / name).write_text("\n".join(LINES))
    assert main(["log", "other", "-o", output]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"plot_log: error: --output {output} is a file to read.")
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
    legend, *others = (axes.get_legend() for axes in figure.axes)
    assert others == [None] * len(others)
    texts = [text.get_text() for text in legend.get_texts()]
    assert not any(map(is_math_text, texts))
    # An even number of dollar signs would be a formula; drawn, "\$" is "$".
    assert [text.replace(r"\$", "$").strip() for text in texts[: len(names)]] == names
    assert [text.partition(" ")[0] for text in texts[len(names) :]] == [
        "during",
        "training,",
        "test",
    ]


def figure_of(*runs):
    """Draws runs of a network each, given as its name and its batch size; None: not told."""
    curves = {}
    for number, (network, size) in enumerate(runs):
        recipe = [] if size is None else [log.RECIPE % (network, size)]
        (curves[f"log{number}"],) = log.read_log([log.READ_START, *recipe, *LINES])
    figure = Figure()
    plot.draw(figure, curves)
    return figure


def test_positions_are_counted_so_that_batch_sizes_compare():
    loss, _ = figure_of(("policy", 32), ("policy", 64)).axes
    assert [list(line.get_xdata()) for line in loss.lines] == [[160], [320]]
    assert figure_of(("policy", 32)).axes[-1].get_xlabel() == "training positions"


def test_iterations_are_counted_if_a_log_does_not_tell_its_batch_size():
    figure = figure_of(("policy", 32), ("policy", None))
    assert [list(line.get_xdata()) for line in figure.axes[0].lines] == [[5], [5]]
    assert figure.axes[-1].get_xlabel() == "iteration"


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_known_levels_tell_what_an_accuracy_means():
    loss, accuracy = figure_of(("policy", 32), ("policy_bn", 64)).axes
    assert texts(loss) == []
    assert [text.partition(" ")[0] for text in texts(accuracy)] == ["5", "29", "41"]
    low, high = accuracy.get_ylim()
    assert low == 0 and high >= 0.45
    assert accuracy.yaxis.get_major_formatter()(0.2, None) == "20 %"


@pytest.mark.parametrize("other", [("value", 32), ("mine:Value", 32), ("policy", None)])
def test_the_levels_are_not_those_of_winners_or_of_unknown_networks(other):
    assert texts(figure_of(("policy", 32), other).axes[1]) == []


def test_the_levels_are_not_those_of_a_value_head_alone():
    start = [log.READ_START, log.RECIPE % ("policy_value", 32), log.VALUE_HEAD_ONLY]
    (curve,) = log.read_log([*start, *LINES])
    figure = Figure()
    plot.draw(figure, {"log": curve})
    assert texts(figure.axes[1]) == []


@pytest.mark.parametrize("head", [True, False])
def test_runs_that_train_a_value_alone_are_drawn_beside_the_values_of_others(head):
    both = log.ProgressPoint(1, 5, 3.0, 0.3, policy_loss=2.5, value_loss=0.5, value_accuracy=0.6)
    two_heads = [log.RECIPE % ("policy_value", 32), log.START, *log.format_point(both)]
    alone = [log.RECIPE % ("policy_value" if head else "value", 32)]
    alone += [log.VALUE_HEAD_ONLY] if head else []
    value = [*alone, log.START, *log.format_point(log.ProgressPoint(1, 5, 0.7, 0.55))]
    curves = {}
    for name, lines in (("two heads", two_heads), ("value", value)):
        (curves[name],) = log.read_log([log.READ_START, *lines])
    figure = Figure()
    plot.draw(figure, curves)
    drawn = {
        axes.get_ylabel(): [
            float(line.get_ydata()[0]) for line in axes.lines if line.get_label()[0] != "_"
        ]
        for axes in figure.axes
    }
    assert drawn == {
        "loss": [3.0],
        "accuracy": [pytest.approx(0.3)],
        "value loss": [0.5, pytest.approx(0.7)],
        "value accuracy": [pytest.approx(0.6), pytest.approx(0.55)],
    }
    plot.draw(Figure(), {"value": curves["value"]})


def test_the_title_names_only_a_network_of_all_logs():
    for other in (("policy_bn", 8), ("policy", None)):
        unknown = other if other[1] else ("policy", None)
        assert figure_of(("policy", 8), unknown).get_suptitle() == "Training: loss and accuracy"
    both = figure_of(("policy", 8), ("policy", 16)).get_suptitle()
    assert both == "Training of policy: loss and accuracy"


def test_the_title_names_the_network_and_the_log():
    assert figure_of(("policy_bn", 8)).get_suptitle() == (
        "Training of policy_bn: loss and accuracy (log0)"
    )
    assert figure_of(("policy", None)).get_suptitle() == "Training: loss and accuracy (log0)"
    two = figure_of(("policy", 8), ("value", 8))
    assert two.get_suptitle() == "Training: loss and accuracy"
