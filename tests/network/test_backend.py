"""The backends: the same answers from each, and the choice among them."""

import sys
import threading
import types

import numpy
import pytest
from network_helpers import assert_equal_outputs, make_trained, outputs, some_planes

from pydlshogi.compat import chainer
from pydlshogi.files import shipped_model
from pydlshogi.network import backend as backend_module
from pydlshogi.network import openvino_program
from pydlshogi.network.backend import (
    AUTO,
    BACKENDS,
    OPENVINO_BFLOAT16,
    OPENVINO_FLOAT32,
    OWN,
    BackendError,
    make_forward,
)
from pydlshogi.network.evaluator import Evaluator
from pydlshogi.network.fold import fold_for_play
from pydlshogi.network.model_file import save_model
from pydlshogi.network.network import Network
from pydlshogi.network.openvino_program import OpenVINOError, OpenVINOProgram
from pydlshogi.network.registry import NETWORKS
from pydlshogi.network.value_kind import ValueKind
from pydlshogi.player import options

CPU = chainer.get_device("@numpy")


def has_bfloat16():
    openvino = pytest.importorskip("openvino")
    return "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def folded(name="policy_value", seed=1):
    sizes = {} if name == "policy_value_small" else {"channels": 16}
    return fold_for_play(make_trained(name, seed, **sizes))


class Sums(Network):
    """A network with a function that no backend but Chainer knows."""

    def forward(self, planes):
        sums = chainer.functions.cumsum(planes, axis=1)
        return chainer.functions.reshape(sums, (len(planes), -1))[:, :2187]


def test_the_engines_option_has_the_backends():
    assert options.BACKENDS == BACKENDS


@pytest.mark.parametrize("name", NETWORKS)
def test_openvino_computes_the_outputs_of_a_network(name):
    pytest.importorskip("openvino")
    network = folded(name)
    program = OpenVINOProgram(network)
    for boards in (1, 3, 20, 1):
        planes = some_planes(boards, boards, network.plane_num)
        found, expected = program(planes), outputs(network, planes)
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert (one.shape, one.dtype) == (other.shape, numpy.float32)
            numpy.testing.assert_allclose(one, other, atol=1e-4 * abs(other).max())


def test_openvino_converts_values_as_the_network_does(tmp_path):
    pytest.importorskip("openvino")
    for name in ("policy_value", "policy_value_small"):  # the two kinds of values
        sizes = {} if name == "policy_value_small" else {"channels": 16}
        save_model(tmp_path / name, make_trained(name, **sizes))
        planes = some_planes(4)
        own = Evaluator(tmp_path / name, CPU).evaluate(planes)
        theirs = Evaluator(tmp_path / name, CPU, OPENVINO_FLOAT32).evaluate(planes)
        numpy.testing.assert_allclose(theirs.wins, own.wins, atol=1e-4)
        numpy.testing.assert_allclose(theirs.logits, own.logits, atol=1e-4 * abs(own.logits).max())


def test_answers_of_openvino_stay_when_it_computes_on():
    pytest.importorskip("openvino")
    network = folded()
    program = OpenVINOProgram(network)
    first, second = some_planes(2, 1), some_planes(2, 2)
    answers = program(first)
    program(second)
    assert_equal_outputs(answers, outputs(network, first))


def test_openvino_computes_in_any_thread_and_takes_any_array():
    pytest.importorskip("openvino")
    program = OpenVINOProgram(folded())
    planes = some_planes(3)
    expected, found = program(planes), []
    others = [planes, planes.astype(numpy.uint8), numpy.asfortranarray(planes)]
    thread = threading.Thread(target=lambda: found.extend(map(program, others)))
    thread.start()
    thread.join()
    assert len(found) == len(others)
    for answers in found:
        assert_equal_outputs(answers, expected)


def test_bfloat16_is_near_to_float32_and_is_not_float32():
    if not has_bfloat16():
        pytest.skip("this processor has no bfloat16")
    path = shipped_model("model_policy_value")
    own = Evaluator(path, CPU)
    half = Evaluator(path, CPU, OPENVINO_BFLOAT16)
    assert half.backend == OPENVINO_BFLOAT16
    planes = some_planes(32, plane_num=own.plane_num)
    expected, found = own.evaluate(planes), half.evaluate(planes)
    difference = abs(found.logits - expected.logits).max() / abs(expected.logits).max()
    assert 1e-4 < difference < 0.05
    assert abs(found.wins - expected.wins).max() < 0.05


def test_a_processor_without_bfloat16_is_told(monkeypatch):
    openvino = pytest.importorskip("openvino")

    class Core(openvino.Core):
        def get_property(self, *names):
            return ["FP32", "INT8"]

    monkeypatch.setattr(openvino, "Core", Core)
    with pytest.raises(BackendError, match="openvino_bfloat16 cannot.*does not compute in bfloat"):
        make_forward(OPENVINO_BFLOAT16, folded(), CPU)
    assert make_forward(AUTO, folded(), CPU)[0] == OWN


@pytest.mark.parametrize("package", ["openvino", "onnx"])
def test_without_its_packages_auto_is_own_and_openvino_says_what_to_install(monkeypatch, package):
    if package == "onnx":
        pytest.importorskip("openvino")
    monkeypatch.setitem(sys.modules, package, None)  # an import of it fails
    assert make_forward(AUTO, folded(), CPU)[0] == OWN
    for name in (OPENVINO_FLOAT32, OPENVINO_BFLOAT16):
        if name == OPENVINO_BFLOAT16 and package == "onnx" and not has_bfloat16():
            continue
        with pytest.raises(
            BackendError, match=f"not installed. Install it: python -m pip .*{package}"
        ):
            make_forward(name, folded(), CPU)


def test_a_network_that_cannot_be_converted_is_refused_and_auto_leaves_it_to_chainer():
    pytest.importorskip("openvino")
    with pytest.raises(BackendError, match="openvino_float32 cannot be used.*Cumsum"):
        make_forward(OPENVINO_FLOAT32, Sums(), CPU)
    assert make_forward(AUTO, Sums(), CPU) == (OWN, None)


def test_a_kind_of_value_of_the_user_is_computed():
    pytest.importorskip("openvino")

    class Percent(ValueKind):
        @staticmethod
        def win_probabilities(values):
            return values[:, 0] / 100

    network = folded()
    network.value_kind = Percent
    planes = some_planes(2)
    assert_equal_outputs(OpenVINOProgram(network)(planes), outputs(network, planes))


@pytest.mark.parametrize(
    "change", [lambda a: 1.01 * a, lambda a: a * numpy.nan, lambda a: a[:, :1]]
)
def test_wrong_results_of_openvino_are_noticed(monkeypatch, change):
    pytest.importorskip("openvino")
    compute = OpenVINOProgram.__call__
    monkeypatch.setattr(
        OpenVINOProgram, "__call__", lambda self, x: [change(a) for a in compute(self, x)]
    )
    with pytest.raises(OpenVINOError, match="results differ"):
        OpenVINOProgram(folded())


def test_openvino_refuses_a_gpu_and_auto_leaves_it_to_chainer():
    device = types.SimpleNamespace(xp=types.SimpleNamespace())
    for name in (OPENVINO_FLOAT32, OPENVINO_BFLOAT16):
        with pytest.raises(BackendError, match="on the CPU only. Choose the device cpu"):
            make_forward(name, folded(), device)
    for name in (AUTO, OWN):
        assert make_forward(name, folded(), device) == (OWN, None)


@pytest.mark.parametrize(
    ("seconds", "chosen"), [(0.01, OPENVINO_BFLOAT16), (0.07, OWN), (0.2, OWN)]
)
def test_auto_chooses_bfloat16_only_where_it_is_much_faster(monkeypatch, seconds, chosen):
    own, half = object(), object()
    monkeypatch.setattr(backend_module, "compile_network", lambda network: own)
    monkeypatch.setattr(backend_module, "_openvino", lambda name, network: half)
    monkeypatch.setattr(
        backend_module, "_seconds", lambda network, forward: 0.1 if forward is own else seconds
    )
    name, forward = make_forward(AUTO, folded(), CPU)
    assert (name, forward) == (chosen, half if chosen == OPENVINO_BFLOAT16 else own)


def test_openvino_uses_the_threads_of_this_package(monkeypatch):
    pytest.importorskip("openvino")
    for number in (1, 2):
        monkeypatch.setattr(openvino_program, "get_threads", lambda number=number: number)
        model = OpenVINOProgram(folded())._request.get_compiled_model()
        assert model.get_property("INFERENCE_NUM_THREADS") == number
