"""The evaluator: what a model says of positions, whatever heads it has."""

import numpy
import pytest
import shogi
from network_helpers import make_deep, make_trained, narrow, outputs

from pydlshogi.compat import chainer
from pydlshogi.features import make_input_features_from_board
from pydlshogi.inference import backend
from pydlshogi.inference.evaluator import Evaluator
from pydlshogi.layers.convolution import using_convolution
from pydlshogi.model_files.model_file import ModelFileError, save_model
from pydlshogi.network.registry import NETWORKS

MOVES = ("7g7f", "3c3d", "8h2b+", "3a2b", "B*5e")


@pytest.fixture(scope="module")
def boards():
    found = [shogi.Board()]
    for move in MOVES:
        found.append(shogi.Board(found[-1].sfen()))
        found[-1].push_usi(move)
    return found


@pytest.mark.parametrize("name", NETWORKS)
def test_the_evaluation_is_the_output_of_the_network(tmp_path, device, boards, name):
    network = make_trained(name, **narrow(name, 16))
    save_model(tmp_path / "model", network)
    evaluator = Evaluator(tmp_path / "model", device)
    assert evaluator.has_policy == name.startswith("policy")
    assert evaluator.has_value == ("value" in name)
    planes = [evaluator.planes(board) for board in boards]
    evaluation = evaluator.evaluate(planes)
    expected = outputs(network, numpy.stack(planes))
    if evaluator.has_policy:
        assert isinstance(evaluation.logits, numpy.ndarray)
        atol = 1e-4 * expected[0].std()
        numpy.testing.assert_allclose(evaluation.logits, expected[0], rtol=1e-4, atol=atol)
    else:
        assert evaluation.logits is None
    if evaluator.has_value:
        assert isinstance(evaluation.wins, numpy.ndarray)
        assert evaluation.wins.shape == (len(boards),)
        values = expected[-1][:, 0].astype(float)
        wins = (values + 1) / 2 if name == "policy_value_small" else 1 / (1 + numpy.exp(-values))
        numpy.testing.assert_allclose(evaluation.wins, wins, atol=1e-4)
    else:
        assert evaluation.wins is None


@pytest.mark.long
@pytest.mark.parametrize("name", ["policy_value_resnet", "policy_value_history_resnet"])
def test_a_network_of_90_blocks_is_loaded_and_gets_a_program(tmp_path, boards, name):
    network = make_deep(name)
    save_model(tmp_path / "model", network)
    evaluator = Evaluator(tmp_path / "model", chainer.get_device("@numpy"))
    assert evaluator._forward is not None
    planes = numpy.stack([evaluator.planes(board) for board in boards])
    logits = outputs(network, planes)[0]
    numpy.testing.assert_allclose(evaluator.evaluate(planes).logits, logits, rtol=1e-3, atol=1e-4)


def test_one_array_and_a_sequence_of_arrays_are_evaluated_alike(tmp_path, device, boards):
    save_model(tmp_path / "model", make_trained("policy_value", channels=16))
    evaluator = Evaluator(tmp_path / "model", device)
    planes = [evaluator.planes(board) for board in boards]
    of_list, of_tuple, of_array = map(
        evaluator.evaluate, (planes, tuple(planes), numpy.stack(planes))
    )
    for other in (of_tuple, of_array):
        numpy.testing.assert_array_equal(other.logits, of_list.logits)
        numpy.testing.assert_array_equal(other.wins, of_list.wins)


def test_the_planes_are_the_features_of_the_board(tmp_path, boards):
    save_model(tmp_path / "model", make_trained("value", channels=8))
    evaluator = Evaluator(tmp_path / "model", chainer.get_device("@numpy"))
    for board in boards:
        planes = evaluator.planes(board)
        assert (planes.shape, planes.dtype) == ((104, 9, 9), numpy.float32)
        numpy.testing.assert_array_equal(planes, make_input_features_from_board(board))


def test_a_file_that_cannot_be_used_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match="does not exist"):
        Evaluator(tmp_path / "missing", chainer.get_device("@numpy"))


@pytest.mark.parametrize("name", ["policy_value", "value"])
def test_chainer_computes_what_has_no_program(tmp_path, monkeypatch, boards, name):
    save_model(tmp_path / "model", make_trained(name, channels=16))
    cpu = chainer.get_device("@numpy")
    ours = Evaluator(tmp_path / "model", cpu)
    monkeypatch.setattr(backend, "compile_network", lambda *_: None)
    chainers = Evaluator(tmp_path / "model", cpu)
    planes = [ours.planes(board) for board in boards]
    for found, expected in zip(chainers.evaluate(planes), ours.evaluate(planes)):
        assert (found is None) == (expected is None)
        if found is not None:
            assert found.shape == expected.shape
            numpy.testing.assert_allclose(found, expected, atol=1e-4 * abs(expected).max())


def test_the_choice_of_chainers_convolution_holds_for_an_evaluator(tmp_path, boards):
    save_model(tmp_path / "model", make_trained("policy", channels=16))
    evaluator = Evaluator(tmp_path / "model", chainer.get_device("@numpy"))
    planes = [evaluator.planes(board) for board in boards]
    expected = evaluator.evaluate(planes).logits

    def refuse(planes):
        raise AssertionError("the program ran")

    evaluator._forward = refuse
    with pytest.raises(AssertionError, match="the program ran"):
        evaluator.evaluate(planes)
    with using_convolution("chainer"):
        found = evaluator.evaluate(planes).logits
    numpy.testing.assert_allclose(found, expected, atol=1e-4 * abs(expected).max())


def test_other_numbers_than_float32_are_evaluated_alike(tmp_path, boards):
    save_model(tmp_path / "model", make_trained("policy_value", channels=16))
    evaluator = Evaluator(tmp_path / "model", chainer.get_device("@numpy"))
    planes = numpy.stack([evaluator.planes(board) for board in boards])
    expected = evaluator.evaluate(planes)
    for other in (planes.astype(numpy.uint8), numpy.asfortranarray(planes)):
        found = evaluator.evaluate(other)
        numpy.testing.assert_array_equal(found.logits, expected.logits)
        numpy.testing.assert_array_equal(found.wins, expected.wins)
