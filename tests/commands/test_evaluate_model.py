"""The program evaluate_model: its figures, and its phases."""

import math

import numpy
import pytest
from training_helpers import SmallValueNetwork, TwoHeads, make_network, make_positions

from pydlshogi.commands import evaluate_model
from pydlshogi.commands.evaluate_model import main
from pydlshogi.compat import chainer
from pydlshogi.model_files.model_file import save_model
from pydlshogi.network.registry import make_network as make_named_network
from pydlshogi.positions import UNKNOWN
from pydlshogi.read_kifu import read_kifu
from pydlshogi.table import markdown
from pydlshogi.training import evaluate
from pydlshogi.training.batches import PlanesConverter
from pydlshogi.training.evaluate import Measured, measure, summarize
from pydlshogi.training.loss import measure as measure_in_training

CPU = chainer.get_device("@numpy")


def test_ranks_and_losses_are_those_of_sorted_logits(device):
    network, positions = make_network(), make_positions(10, 1)
    planes, labels, _ = PlanesConverter(positions)(range(10), CPU)
    logits = network(planes).array.astype(float)
    losses, ranks, *value = measure(network.to_device(device), positions, device, batch_size=4)
    assert value == [None, None, None]
    for position in range(10):
        order = sorted(range(2187), key=lambda label: -logits[position, label])  # stable
        assert order.index(labels[position]) == ranks[position]
        total = math.log(numpy.exp(logits[position]).sum())
        assert losses[position] == pytest.approx(total - logits[position, labels[position]], 1e-5)


def test_equal_logits_are_taken_in_their_order():
    network = make_network()
    network.layer.W.array[...] = 0
    positions = make_positions(4, 1)
    positions["label"] = [0, 2, 700, 2186]
    losses, ranks, *_ = measure(network, positions, CPU)
    assert list(ranks) == [0, 2, 700, 2186]
    assert losses == pytest.approx([math.log(2187)] * 4, rel=1e-6)


@pytest.mark.parametrize("name", ["policy_value_small", "policy_hand1x1"])
def test_they_are_what_training_measures_of_any_network(device, name):
    numpy.random.seed(1)
    network, positions = make_named_network(name), make_positions(9, 1)
    planes = PlanesConverter(positions)(range(9), CPU)[0]
    with chainer.using_config("train", False):
        output = network(planes)
    logits = (output[0] if isinstance(output, tuple) else output).array
    positions["label"][:4] = logits[:4].argmax(axis=1)  # right about these
    network.to_device(device)
    losses, ranks, *_ = measure(network, positions, device, batch_size=4)
    with chainer.using_config("train", False):
        batch = PlanesConverter(positions)(range(9), device)
        _, expected = measure_in_training(network, *batch)
    assert losses.mean() == pytest.approx(float(expected["loss"][0]), rel=1e-5)
    assert (ranks == 0).sum() == 4
    assert float(expected["accuracy"][0]) == pytest.approx(4 / 9)


def test_phases_divide_the_positions():
    ply = numpy.array([1, 20, 21, 150, 151, 400])
    losses = numpy.array([1.0, 3.0, 5.0, 7.0, 9.0, 11.0])
    ranks = numpy.array([0, 2, 4, 1, 3, 9])
    rows = {row.moves: row[1:4] for row in summarize(ply, Measured(losses, ranks, None, None))}
    assert rows == {
        "1-20": (2, 2.0, (0.5, 1.0, 1.0)),
        "21-40": (1, 5.0, (0.0, 0.0, 1.0)),
        "121-150": (1, 7.0, (0.0, 1.0, 1.0)),
        "151-": (2, 10.0, (0.0, 0.0, 0.5)),
        "all": (6, 6.0, (1 / 6, 0.5, 5 / 6)),
    }


def test_the_program_prints_a_table_either_way(folder, capsys):
    numpy.random.seed(1)
    save_model("model", make_named_network("policy_value_small"))
    assert main(["model", "test.txt", "--gpu", "-1"]) == 0
    shown, _ = capsys.readouterr().out.split("\n\n")
    markdown = [line.strip("| ").split(" | ") for line in shown.splitlines()]
    assert main(["model", "test.txt", "--gpu", "-1", "--tsv", "-b", "7"]) == 0
    shown, _ = capsys.readouterr().out.split("\n\n")
    tsv = [line.split("\t") for line in shown.splitlines()]
    policy = ["moves", "positions", "loss", "top 1", "top 3", "top 5"]
    assert markdown[0] == [*policy, "value loss", "value accuracy"]
    assert tsv[0] == [title.replace(" ", "_") for title in markdown[0]]
    assert [row[:2] for row in markdown[2:]] == [row[:2] for row in tsv[1:]]
    assert tsv[-1][:2] == ["all", str(len(read_kifu("test.txt")))]
    assert sum(int(row[1]) for row in tsv[1:-1]) == int(tsv[-1][1])
    for shown, exact in zip(markdown[2:], tsv[1:]):
        assert [float(cell) for cell in shown[2:]] == pytest.approx(
            [float(cell) for cell in exact[2:]], abs=1e-4
        )


@pytest.mark.parametrize(
    "words, named",
    [
        ("missing test.txt", "missing"),
        ("test.txt test.txt", "test.txt"),
        ("model missing.txt", "missing.txt"),
        ("model test.txt --gpu 99", "GPU 99"),
    ],
)
def test_what_cannot_go_on_gets_one_sentence(folder, capsys, words, named):
    save_model("model", make_named_network("policy_value_small"))
    assert main(words.split()) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("evaluate_model: error: ")
    assert named in line


def test_records_left_out_are_named(folder, capsys):
    save_model("model", make_named_network("policy_value_small"))
    with open("test.txt", "a", encoding="utf-8") as kifulist:
        kifulist.write("missing.csa\n")
    for _ in ("read", "from the cache"):
        assert main(["model", "test.txt", "--gpu", "-1"]) == 0
        assert "missing.csa: " in capsys.readouterr().err


def test_a_model_that_answers_no_numbers_is_named(folder, capsys):
    network = make_named_network("policy_value_small")
    for parameter in network.params():
        parameter.array *= 1e12
    save_model("model", network)
    assert main(["model", "test.txt", "--gpu", "-1"]) == 1
    output = capsys.readouterr()
    assert "not finite" in output.err.splitlines()[-1]
    assert not output.out


def test_an_interrupt_gets_one_sentence(folder, capsys, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    save_model("model", make_named_network("policy_value_small"))
    monkeypatch.setattr(evaluate, "measure", interrupt)
    assert main(["model", "test.txt", "--gpu", "-1"]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "evaluate_model: interrupted."


@pytest.mark.parametrize("network_class", [SmallValueNetwork, TwoHeads])
def test_values_are_what_training_measures(device, network_class):
    network, positions = network_class(), make_positions(20, 1)
    positions["result"] = numpy.arange(20) % 4
    positions["ply"] = 1 + numpy.arange(20)
    network.to_device(device)
    measured = measure(network, positions, device, batch_size=6)
    assert (measured.losses is not None) == (measured.ranks is not None) == network.has_policy
    with chainer.using_config("train", False):
        _, expected = measure_in_training(network, *PlanesConverter(positions)(range(20), device))
    row = summarize(positions["ply"], measured)[-1]
    assert row.value_loss == pytest.approx(float(expected["value_loss"][0]), rel=1e-5)
    assert row.value_accuracy == pytest.approx(float(expected["value_accuracy"][0]))
    assert numpy.isnan(measured.value_losses).sum() == 5  # unknown results


def test_a_value_network_has_the_columns_of_values_alone(folder, capsys):
    numpy.random.seed(1)
    save_model("model", make_named_network("value", channels=4))
    assert main(["model", "test.txt", "--gpu", "-1", "--tsv"]) == 0
    shown, _ = capsys.readouterr().out.split("\n\n")
    head, *rows = (line.split("\t") for line in shown.splitlines())
    assert head == ["moves", "positions", "value_loss", "value_accuracy"]
    assert float(rows[-1][2]) == pytest.approx(numpy.log(2), abs=0.05)  # it has learned nothing


def test_the_second_table_is_the_calibration_of_the_value_head(folder, capsys):
    numpy.random.seed(1)
    save_model("model", make_named_network("policy_value_small"))
    assert main(["model", "test.txt", "--gpu", "-1"]) == 0
    _, table = capsys.readouterr().out.split("\n\n")
    markdown = [line.strip("| ").split(" | ") for line in table.splitlines()]
    assert main(["model", "test.txt", "--gpu", "-1", "--tsv"]) == 0
    _, table = capsys.readouterr().out.split("\n\n")
    tsv = [line.split("\t") for line in table.splitlines()]
    assert markdown[0] == [
        "winning probability",
        "positions",
        "predicted",
        "won",
        "error",
        "evaluation",
    ]
    assert tsv[0] == [title.replace(" ", "_") for title in markdown[0]]
    assert tsv[-1][:2] == ["all", str(len(read_kifu("test.txt")))]
    for shown, exact in zip(markdown[2:], tsv[1:]):
        assert shown[:2] == exact[:2]
        assert [float(cell) for cell in shown[2:]] == pytest.approx(
            [float(cell) for cell in exact[2:]], abs=1e-4
        )


def test_the_mean_prediction_is_that_of_the_network(device):
    network, positions = TwoHeads(), make_positions(20, 1)
    network.to_device(device)
    measured = measure(network, positions, device, batch_size=6)
    with chainer.using_config("train", False):
        _, values = network(PlanesConverter(positions)(range(20), device)[0])
    expected = 1 / (1 + numpy.exp(-chainer.get_device("@numpy").send(values.array)[:, 0]))
    numpy.testing.assert_allclose(measured.wins, expected, rtol=1e-5)


def test_the_picture_is_written_and_named(folder, capsys):
    pytest.importorskip("matplotlib")
    save_model("model", make_named_network("policy_value_small"))
    assert main(["model", "test.txt", "--gpu", "-1", "-o", "new/calibration.png"]) == 0
    assert (folder / "new/calibration.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err.splitlines()[-1] == "new/calibration.png: picture"


@pytest.mark.long
@pytest.mark.parametrize(
    "network, output, named",
    [
        ("policy_hand1x1", "a.png", "model has none"),
        ("policy_value_small", "test.txt", "--output test.txt is a file to read"),
        ("policy_value_small", "model", "--output model is a file to read"),
        ("policy_value_small", "a.xyz", "Choose another file"),
        ("policy_value_small", "test.txt/a.png", "cannot be made or written to"),
        ("policy_value_small", "new/", "is a folder"),
    ],
)
def test_a_picture_that_cannot_be_drawn_gets_one_sentence(
    folder, capsys, monkeypatch, network, output, named
):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(evaluate_model, "load_games", None)  # it is found before they are read
    save_model("model", make_named_network(network))
    before = (folder / "test.txt").read_bytes(), (folder / "model").read_bytes()
    assert main(["model", "test.txt", "--gpu", "-1", "--output", output]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("evaluate_model: error: ")
    assert named in line
    assert before == ((folder / "test.txt").read_bytes(), (folder / "model").read_bytes())


def test_a_scale_without_a_value_head_gets_one_sentence(folder, capsys, monkeypatch):
    monkeypatch.setattr(evaluate_model, "load_games", None)  # it is found before they are read
    save_model("model", make_named_network("policy_hand1x1"))
    assert main(["model", "test.txt", "--gpu", "-1", "--eval_scale", "400"]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("evaluate_model: error: --eval_scale is for the calibration")


def test_the_scale_changes_the_evaluations_of_the_calibration(folder, capsys, monkeypatch):
    scales = []
    monkeypatch.setattr(
        "pydlshogi.training.calibration.calibrate",
        lambda wins, positions, scale: scales.append(scale) or [],
    )
    save_model("model", make_named_network("policy_value_small"))
    assert main(["model", "test.txt", "--gpu", "-1"]) == 0
    assert main(["model", "test.txt", "--gpu", "-1", "--eval_scale", "400"]) == 0
    assert scales == [326, 400]


def test_without_a_known_result_the_value_columns_are_nan(capsys):
    positions = make_positions(5, 1)
    positions["result"] = UNKNOWN
    measured = evaluate.measure_finite(SmallValueNetwork(), positions, CPU)
    row = summarize(positions["ply"], measured)[-1]
    assert numpy.isnan([row.value_loss, row.value_accuracy]).all()
    assert "nan" in markdown(*evaluate.as_table([row]))
