"""Networks as ONNX models, computed by ONNX Runtime."""

import random

import numpy
import pytest
import shogi
from network_helpers import make_deep, make_trained, narrow, outputs, some_planes

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

from pydlshogi.compat import chainer
from pydlshogi.features import make_input_features_from_board, make_output_label
from pydlshogi.model_files import agreement
from pydlshogi.model_files.agreement import TOLERANCE, largest_difference
from pydlshogi.model_files.onnx_dlshogi import export_dlshogi, label_numbers, to_dlshogi
from pydlshogi.model_files.onnx_export import (
    OPSET,
    ExportError,
    export,
    run,
    save,
)
from pydlshogi.network.network import Network, split_output
from pydlshogi.network.policy_value import PolicyValueNetwork
from pydlshogi.network.registry import NETWORKS
from pydlshogi.network.value_kind import ValueKind

F = chainer.functions


def small(name, seed=1):
    return make_trained(name, seed, **narrow(name))


def expected(network, planes):
    """What the network answers as in play, by the names of the model's outputs."""
    found = outputs(network, planes)
    logits, values = split_output(network, found if len(found) > 1 else found[0])
    answers = {} if logits is None else {"policy": logits}
    if values is not None:
        wins = network.value_kind.win_probabilities(chainer.Variable(values))
        answers["value"] = wins[:, None]
    return answers


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("batch", [1, 5])
def test_onnx_runtime_computes_what_the_network_computes(name, batch):
    # With other seeds, some of the networks are so sure that their probabilities are 0.
    network = small(name, seed=2)
    planes = some_planes(batch, plane_num=network.plane_num)
    results = run(export(network), {"planes": planes})
    answers = expected(network, planes)
    assert results.keys() == answers.keys()
    for key, array in answers.items():
        assert results[key].shape == array.shape
        assert results[key].dtype == numpy.float32
        assert largest_difference(results[key], array) < TOLERANCE


def test_a_network_of_90_blocks_is_converted():
    network = make_deep("policy_value_resnet")
    planes = some_planes(2)
    (logits, _), found = outputs(network, planes), run(export(network), {"planes": planes})
    assert largest_difference(found["policy"], logits) < TOLERANCE


def test_the_file_is_a_checked_model_of_an_old_operator_set(tmp_path):
    save(export(small("policy_value")), tmp_path / "new" / "m.onnx")
    model = onnx.load(str(tmp_path / "new" / "m.onnx"))
    onnx.checker.check_model(model, full_check=True)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", OPSET)]
    (planes,) = model.graph.input
    sizes = [dim.dim_param or dim.dim_value for dim in planes.type.tensor_type.shape.dim]
    assert sizes == ["batch_size", 104, 9, 9]
    assert [output.name for output in model.graph.output] == ["policy", "value"]
    assert not [node for node in model.graph.node if node.op_type == "BatchNormalization"]


def test_the_network_is_not_changed():
    network = small("policy_value_resnet")
    before = {path: parameter.array.copy() for path, parameter in network.namedparams()}
    export(network)
    for path, parameter in network.namedparams():
        numpy.testing.assert_array_equal(parameter.array, before[path])


class Readers(Network):
    """A network of a reader, with functions that ours do not use."""

    value_kind = PolicyValueNetwork.value_kind

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = chainer.links.Convolution2D(104, 4, ksize=3, pad=1)
            self.bn = chainer.links.BatchNormalization(4)
            self.b = chainer.links.Convolution2D(8, 27, ksize=1)
            self.c = chainer.links.Linear(27 * 81, 1)

    def forward(self, x):
        h = F.relu(self.bn(self.a(x)))
        h = F.concat((h, F.sigmoid(h) * F.tanh(h)), axis=1)
        h = self.b(0.5 * h + 1.0 - h)
        h = F.transpose(F.transpose(h, (0, 2, 3, 1)), (0, 3, 1, 2))
        return F.reshape(h, (len(x), 2187)), self.c(F.softplus(h))


def test_a_network_of_a_reader_is_converted():
    numpy.random.seed(1)
    network, planes = Readers(), some_planes(3)
    results = run(export(network), {"planes": planes})
    for key, array in expected(network, planes).items():
        assert largest_difference(results[key], array) < TOLERANCE


class Flat(Readers):
    """A network whose values have the shape (batch,)."""

    def forward(self, x):
        logits, values = super().forward(x)
        return logits, F.reshape(values, (-1,))


def test_values_without_a_dimension_of_their_own_are_converted():
    numpy.random.seed(1)
    network, planes = Flat(), some_planes(3)
    results = run(export(network), {"planes": planes})
    for key, array in expected(network, planes).items():
        assert largest_difference(results[key], array.reshape(3, -1)) < TOLERANCE


class Arrays(Readers):
    """A network that computes with the array of planes itself."""

    def forward(self, x):
        return super().forward(x * (x > 0).astype("f"))


def test_a_network_that_takes_arrays_alone_is_refused_with_a_sentence():
    with pytest.raises(ExportError, match="does not compute with Chainer's variables"):
        export(Arrays())


class Cut(Network):
    """A network with a function of 6 planes that differs from test to test."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        with self.init_scope():
            self.a = chainer.links.Convolution2D(104, 6, ksize=3, pad=1)
            self.b = chainer.links.Convolution2D(None, 27, ksize=1)

    def forward(self, x):
        return F.reshape(self.b(self.function(F.relu(self.a(x)))), (-1, 2187))


@pytest.mark.parametrize(
    "function",
    [
        lambda h: h[..., :5][:, :, :, [0, 1, 2, 3, 4, 0, 1, 2, 3]],
        lambda h: F.reshape(h, (-1, 2, 3, 9, 9))[:, 1, 0:2],
        lambda h: F.reshape(h, (-1, 2, 3, 9, 9))[:, -1, ..., ::1],
        lambda h: h[:, numpy.array([True, False] * 3)],
        lambda h: F.reshape(F.reshape(h[:, [0, 1, 2, 3, 4, 5, 0]], (-1, 7, 81)), (-1, 7, 9, 9)),
    ],
    ids=["dots", "number", "last number", "mask", "seven"],
)
def test_indices_of_all_kinds_are_converted(function):
    numpy.random.seed(1)
    network, planes = Cut(function), some_planes(3)
    answers = expected(network, planes)
    results = run(export(network), {"planes": planes})
    assert largest_difference(results["policy"], answers["policy"]) < TOLERANCE


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda h: F.reshape(h[:, None], (-1, 6, 9, 9)), "the index None, not supported"),
        (
            lambda h: F.reshape(h[:, [0] * 9, list(range(9))], (-1, 1, 9, 9)),
            "index of several arrays, not supported",
        ),
        (lambda h: h[:, ::2], "a slice with step 2, not supported"),
    ],
)
def test_another_index_is_one_sentence(function, message):
    network = Cut(function)
    network(some_planes(1))
    with pytest.raises(ExportError, match=message):
        export(network)


def test_a_model_that_onnx_runtime_cannot_compute_is_one_sentence(capfd):
    model = export(small("policy"))
    for constant in model.graph.initializer:
        if constant.dims == [8, 8, 3, 3]:
            constant.dims[:] = [8, 4, 3, 6]
    with pytest.raises(ExportError, match="ONNX Runtime cannot compute .* Nothing was written"):
        run(model, {"planes": some_planes(2)})
    assert "onnxruntime" not in capfd.readouterr().err


def test_results_of_another_shape_differ_without_limit():
    assert largest_difference(numpy.ones((3, 1)), numpy.ones((3, 2))) == float("inf")
    assert largest_difference(numpy.ones(3), numpy.zeros(3)) == float("inf")
    assert largest_difference(numpy.zeros(3), numpy.zeros(3)) == 0


def test_an_unknown_function_is_named():
    class Unknown(Readers):
        def forward(self, x):
            logits, values = super().forward(x)
            return F.sin(logits), values

    with pytest.raises(ExportError, match="uses the function Sin, which .* Known: "):
        export(Unknown())


def test_an_unknown_kind_of_value_is_named():
    network = small("policy_value")
    network.value_kind = type("Own", (ValueKind,), {})
    with pytest.raises(ExportError, match="kind Own"):
        export(network)


# dlshogi's inputs and outputs


def some_games(plies):
    """Yields boards of random games with cshogi's board of the same position."""
    cshogi = pytest.importorskip("cshogi")
    choice = random.Random(4).choice
    board, other = shogi.Board(), cshogi.Board()
    for _ in range(plies):
        yield board, other
        moves = list(other.legal_moves)
        if not moves:
            board, other = shogi.Board(), cshogi.Board()
            continue
        move = choice(moves)
        board.push_usi(cshogi.move_to_usi(move))
        other.push(move)


def dlshogis_planes(board):
    """dlshogi's input of a position, as cshogi makes it."""
    dlshogi = pytest.importorskip("cshogi.dlshogi")
    planes1 = numpy.zeros((62, 9, 9), numpy.float32)
    planes2 = numpy.zeros((57, 9, 9), numpy.float32)
    dlshogi.make_input_features(board, planes1, planes2)
    return planes1, planes2


def test_our_planes_become_those_of_cshogi_but_for_attacks_and_check():
    pieces = [*range(14), *range(31, 45)]
    for board, other in some_games(250):
        ours = to_dlshogi(make_input_features_from_board(board)[None])
        theirs = dlshogis_planes(other)
        numpy.testing.assert_array_equal(ours[0][0, pieces], theirs[0][pieces])
        numpy.testing.assert_array_equal(ours[1][0, :56], theirs[1][:56])


def test_our_labels_are_those_of_cshogi_in_another_order():
    cshogi = pytest.importorskip("cshogi")
    dlshogi = pytest.importorskip("cshogi.dlshogi")
    ours_of = label_numbers()
    assert sorted(ours_of) == list(range(2187))
    for board, other in some_games(400):
        for move in other.legal_moves:
            ours = make_output_label(shogi.Move.from_usi(cshogi.move_to_usi(move)), board.turn)
            assert ours_of[dlshogi.make_move_label(move, other.turn)] == ours


@pytest.mark.parametrize("name", ["policy_value", "policy_value_resnet", "policy_value_small"])
def test_with_cshogis_planes_the_model_answers_as_the_network(name):
    network = small(name)
    ours, theirs = [], []
    for board, other in some_games(60):
        ours.append(make_input_features_from_board(board))
        theirs.append(dlshogis_planes(other))
    inputs = {f"input{n + 1}": numpy.stack([pair[n] for pair in theirs]) for n in range(2)}
    results = run(export_dlshogi(network), inputs)
    answers = expected(network, numpy.stack(ours))
    policy = answers["policy"][:, label_numbers()]
    assert largest_difference(results["output_policy"], policy) < TOLERANCE
    assert largest_difference(results["output_value"], answers["value"]) < TOLERANCE


@pytest.mark.parametrize("name", ["policy", "value"])
def test_dlshogi_needs_both_heads(name):
    with pytest.raises(ExportError, match="needs a model with a policy and a value"):
        export_dlshogi(small(name))


@pytest.mark.parametrize("make", [export, export_dlshogi])
def test_the_check_compares_and_notices_a_difference(make):
    network, other = small("policy_value"), small("policy_value", seed=2)
    differences = agreement.check_onnx(make(network), network)
    assert len(differences) == 2
    assert max(differences.values()) < TOLERANCE
    with pytest.raises(ExportError, match="computes another .*policy.* Nothing was written"):
        agreement.check_onnx(make(other), network)
