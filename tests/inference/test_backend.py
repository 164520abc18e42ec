"""The backends: the same answers from each, and the choice among them."""

import ctypes
import importlib.machinery
import subprocess
import sys
import threading
import types

import numpy
import pytest
from network_helpers import assert_equal_outputs, make_trained, narrow, outputs, some_planes

from pydlshogi.compat import chainer
from pydlshogi.files import shipped_model
from pydlshogi.inference import backend as backend_module
from pydlshogi.inference import openvino_program
from pydlshogi.inference.backend import (
    AUTO,
    BACKENDS,
    OPENVINO_BFLOAT16,
    OPENVINO_FLOAT32,
    OPENVINO_INT8,
    OWN,
    BackendError,
    make_forward,
)
from pydlshogi.inference.evaluator import Evaluator
from pydlshogi.inference.openvino_program import INT8, OpenVINOProgram
from pydlshogi.inference.program import Program
from pydlshogi.model_files.agreement import planes_of_random_games
from pydlshogi.model_files.fold import fold_for_play
from pydlshogi.model_files.model_file import save_model
from pydlshogi.network.network import Network
from pydlshogi.network.registry import NETWORKS
from pydlshogi.network.value_kind import ValueKind
from pydlshogi.player import engine_options

CPU = chainer.get_device("@numpy")


def has_bfloat16():
    openvino = pytest.importorskip("openvino")
    return "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def folded(name="policy_value", seed=1):
    return fold_for_play(make_trained(name, seed, **narrow(name, 16)))


def own_is_slow(forward):
    """Stands for the time of a function: OpenVINO is much faster."""
    return 1.0 if isinstance(forward, Program) else 0.1


class Sums(Network):
    """A network with a function that no backend but Chainer knows."""

    def forward(self, planes):
        sums = chainer.functions.cumsum(planes, axis=1)
        return chainer.functions.reshape(sums, (len(planes), -1))[:, :2187]


def test_the_engines_option_has_the_backends():
    assert engine_options.BACKENDS == BACKENDS


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
        save_model(tmp_path / name, make_trained(name, **narrow(name, 16)))
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


def test_openvino_takes_any_array():
    pytest.importorskip("openvino")
    program = OpenVINOProgram(folded())
    planes = some_planes(3)
    expected = program(planes)
    for other in (planes.astype(numpy.uint8), numpy.asfortranarray(planes)):
        assert_equal_outputs(program(other), expected)


@pytest.mark.skipif(sys.platform != "linux", reason="the stack of signal handlers of Linux")
def test_signals_keep_their_stack_when_programs_come_and_go():
    """A freed stack would crash the process at the next signal."""
    pytest.importorskip("openvino")

    class Stack(ctypes.Structure):
        _fields_ = (("address", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_long))

    def address():
        assert ctypes.CDLL(None).sigaltstack(None, ctypes.byref(stack := Stack())) == 0
        return stack.address

    first = OpenVINOProgram(folded())
    expected = address()
    second = OpenVINOProgram(folded())
    assert address() == expected
    del first
    assert address() == expected
    del second
    assert address() == expected


def test_several_threads_get_their_own_answers_of_openvino():
    pytest.importorskip("openvino")
    program = OpenVINOProgram(folded())
    inputs = [some_planes(2, seed) for seed in range(4)]
    expected = [program(planes)[0] for planes in inputs]
    wrong = []

    def work(number):
        for _ in range(200):
            if not numpy.allclose(program(inputs[number])[0], expected[number], atol=1e-3):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert not numpy.allclose(expected[0], expected[1], atol=1e-3)


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
    monkeypatch.setattr(backend_module, "_seconds", lambda forward, planes: own_is_slow(forward))
    with pytest.raises(BackendError) as caught:
        make_forward(OPENVINO_BFLOAT16, folded(), CPU)
    assert str(caught.value) == (
        "backend openvino_bfloat16 cannot be used: this processor has no fast bfloat16. "
        "Choose the backend auto or own."
    )
    assert make_forward(AUTO, folded(), CPU)[0] == OPENVINO_INT8  # it needs no bfloat16


def test_openvino_is_loaded_without_its_reports_over_the_internet():
    pytest.importorskip("openvino_telemetry")
    program = """
import sys
from pydlshogi.inference.openvino_program import OpenVINOProgram
from pydlshogi.network import registry
OpenVINOProgram(registry.make_network('policy', channels=16))
print(*(bool(sys.modules.get(name)) for name in ('openvino', 'openvino_telemetry')))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert found.stdout.split() == [b"True", b"False"]


@pytest.mark.parametrize("package", ["openvino", "onnx"])
def test_without_its_packages_auto_is_own_and_openvino_says_what_to_install(monkeypatch, package):
    pytest.importorskip("openvino")
    monkeypatch.setattr(backend_module, "_seconds", lambda forward, planes: own_is_slow(forward))
    monkeypatch.setitem(sys.modules, package, None)  # it cannot be found
    assert make_forward(AUTO, folded(), CPU)[0] == OWN
    for name in (OPENVINO_FLOAT32, OPENVINO_BFLOAT16, OPENVINO_INT8):
        if name == OPENVINO_BFLOAT16 and package == "onnx" and not has_bfloat16():
            continue  # the processor is the first reason
        with pytest.raises(BackendError) as caught:
            make_forward(name, folded(), CPU)
        assert str(caught.value) == (
            f"backend {name} cannot be used: the package {package} is not installed. Install it: "
            "python -m pip install openvino onnx. Choose the backend "
            "auto or own."
        )


class Broken(types.ModuleType):
    """A package that was found, and does not work."""

    @property
    def Core(self):
        raise OSError("libtbb.so.12: cannot open shared object file")


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (types.ModuleType("openvino"), "AttributeError: .*Core"),
        (Broken("openvino"), "OSError: libtbb.so.12: cannot open"),
    ],
)
def test_an_openvino_that_is_broken_is_named_and_auto_is_own(monkeypatch, module, reason):
    module.__spec__ = importlib.machinery.ModuleSpec("openvino", None)
    monkeypatch.setitem(sys.modules, "openvino", module)
    with pytest.raises(BackendError, match=rf"OpenVINO fails \({reason}"):
        make_forward(OPENVINO_FLOAT32, folded(), CPU)
    assert make_forward(AUTO, folded(), CPU)[0] == OWN


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


@pytest.mark.long
@pytest.mark.parametrize("backend", [OPENVINO_FLOAT32, OPENVINO_BFLOAT16, OPENVINO_INT8])
@pytest.mark.parametrize(
    "change", [lambda a: 1.01 * a, lambda a: a * numpy.nan, lambda a: a[:, :1]]
)
def test_wrong_results_of_openvino_are_noticed(monkeypatch, backend, change):
    if backend == OPENVINO_BFLOAT16 and not has_bfloat16():
        pytest.skip("this processor has no bfloat16")
    pytest.importorskip("openvino")
    compute = OpenVINOProgram.__call__
    monkeypatch.setattr(
        OpenVINOProgram, "__call__", lambda self, x: [change(a) for a in compute(self, x)]
    )
    monkeypatch.setattr(backend_module, "_seconds", lambda forward, planes: own_is_slow(forward))
    with pytest.raises(BackendError, match="results in float32 differ"):
        make_forward(backend, folded(), CPU)
    assert make_forward(AUTO, folded(), CPU)[0] == OWN


def test_what_our_own_program_cannot_compute_is_left_to_chainer(monkeypatch):
    """The mean depends on all positions of a batch, so no conversion is right."""

    class Means(Network):
        def forward(self, planes):
            flat = chainer.functions.reshape(planes, (len(planes), -1))[:, :2187]
            return flat * (1 + 0.3 * float(getattr(planes, "array", planes).mean()))

    monkeypatch.setattr(backend_module, "_seconds", lambda forward, planes: own_is_slow(forward))
    assert make_forward(AUTO, Means(), CPU) == (OWN, None)


def test_values_that_are_all_zero_are_right():
    pytest.importorskip("openvino")
    network = folded()
    network.l15_v.W.array[...] = network.l15_v.b.array[...] = 0
    assert (OpenVINOProgram(network)(some_planes(2))[1] == 0).all()


@pytest.mark.long
@pytest.mark.parametrize("backend", [OPENVINO_FLOAT32, OPENVINO_INT8])
@pytest.mark.parametrize(("layer", "array"), [("l5", "W"), ("l5", "b"), ("l15_v", "b")])
def test_openvino_refuses_numbers_that_are_not_finite_and_auto_leaves_them_to_the_player(
    monkeypatch, backend, layer, array
):
    """A ReLU of OpenVINO hides nan: the player would not notice it."""
    pytest.importorskip("openvino")
    monkeypatch.setattr(backend_module, "_seconds", lambda forward, planes: own_is_slow(forward))
    network = folded()
    getattr(getattr(network, layer), array).array[...] = numpy.nan
    with pytest.raises(BackendError, match="the network gives numbers that are not finite"):
        make_forward(backend, network, CPU)
    assert make_forward(AUTO, network, CPU)[0] == OWN


def test_openvino_refuses_a_gpu_and_auto_leaves_it_to_chainer():
    device = types.SimpleNamespace(xp=types.SimpleNamespace())
    for name in (OPENVINO_FLOAT32, OPENVINO_BFLOAT16, OPENVINO_INT8):
        with pytest.raises(BackendError, match="on the CPU, and the device is a GPU. Choose"):
            make_forward(name, folded(), device)
    for name in (AUTO, OWN):
        assert make_forward(name, folded(), device) == (OWN, None)


@pytest.mark.parametrize(
    ("bfloat16", "int8", "chosen"),
    [
        (0.01, 0.02, OPENVINO_BFLOAT16),
        (0.01, 0.009, OPENVINO_BFLOAT16),
        (0.06, 0.04, OPENVINO_INT8),
        (0.07, 0.06, OPENVINO_INT8),
        (0.07, 0.07, OWN),
        (0.2, 0.3, OWN),
        (None, 0.06, OPENVINO_INT8),
        (0.06, None, OPENVINO_BFLOAT16),
        (None, None, OWN),
    ],
)
def test_auto_chooses_fewer_bits_only_where_they_are_much_faster(
    monkeypatch, bfloat16, int8, chosen
):
    """Our own program takes 0.1 s; None is a backend that cannot compute here."""
    seconds = {OWN: 0.1, OPENVINO_BFLOAT16: bfloat16, OPENVINO_INT8: int8}

    def make(name, network):
        if seconds[name] is None:
            raise BackendError(name, "it is broken.")
        return name

    monkeypatch.setattr(backend_module, "compile_network", lambda *_: OWN)
    monkeypatch.setattr(backend_module, "_openvino", make)
    monkeypatch.setattr(backend_module, "_seconds", lambda forward, planes: seconds[forward])
    assert make_forward(AUTO, folded(), CPU) == (chosen, chosen)


@pytest.mark.parametrize("disturbed", range(0, 18, 3))
def test_auto_chooses_well_while_another_program_runs_for_a_while(monkeypatch, disturbed):
    """Some runs in a row take five times as long, those of one backend or of both."""
    runs = 0

    def seconds(forward, planes):
        nonlocal runs
        runs += 1
        return (0.1 if forward == OWN else 0.04) * (5 if disturbed <= runs < disturbed + 12 else 1)

    monkeypatch.setattr(backend_module, "compile_network", lambda *_: OWN)
    monkeypatch.setattr(backend_module, "_openvino", lambda name, network: name)
    monkeypatch.setattr(backend_module, "_seconds", seconds)
    assert make_forward(AUTO, folded(), CPU)[0] == OPENVINO_BFLOAT16


def test_auto_does_not_compare_for_long_on_a_slow_computer(monkeypatch):
    now = 0.0
    runs = []

    def seconds(forward, planes):
        nonlocal now
        now += 0.4
        runs.append(forward)
        return 0.4

    monkeypatch.setattr(backend_module, "compile_network", lambda *_: OWN)
    monkeypatch.setattr(backend_module, "_openvino", lambda name, network: name)
    monkeypatch.setattr(backend_module, "_seconds", seconds)
    monkeypatch.setattr(backend_module.time, "perf_counter", lambda: now)
    assert make_forward(AUTO, folded(), CPU)[0] == OWN
    assert runs.count(OWN) == 6  # one to prepare the arrays


def test_auto_chooses_a_faster_openvino(monkeypatch):
    pytest.importorskip("openvino")
    monkeypatch.setattr(backend_module, "_seconds", lambda forward, planes: own_is_slow(forward))
    name, forward = make_forward(AUTO, folded(), CPU)
    assert name == (OPENVINO_BFLOAT16 if has_bfloat16() else OPENVINO_INT8)
    assert type(forward) is OpenVINOProgram


@pytest.mark.long
@pytest.mark.parametrize("name", NETWORKS)
def test_int8_is_near_to_float32_and_is_not_float32(name):
    pytest.importorskip("openvino")
    network = folded(name)
    program = OpenVINOProgram(network, INT8)
    planes = planes_of_random_games(20, network.plane_num, 9)
    for found, expected in zip(program(planes), outputs(network, planes)):
        difference = abs(found - expected).max() / abs(expected).max()
        assert 1e-4 < difference < 0.15


@pytest.mark.long
def test_int8_predicts_the_moves_and_the_values_of_the_shipped_model():
    pytest.importorskip("openvino")
    path = shipped_model("model_policy_value")
    own = Evaluator(path, CPU)
    eight = Evaluator(path, CPU, OPENVINO_INT8)
    assert eight.backend == OPENVINO_INT8
    planes = planes_of_random_games(100, own.plane_num, 7)
    expected, found = own.evaluate(planes), eight.evaluate(planes)
    assert (found.logits.argmax(1) == expected.logits.argmax(1)).mean() >= 0.9
    assert abs(found.wins - expected.wins).mean() < 0.02


def test_int8_computes_in_integers():
    """OpenVINO's own list of what it runs names the types of the convolutions' inputs."""
    pytest.importorskip("openvino")
    program = OpenVINOProgram(folded("policy_value_resnet"), INT8)
    operations = program._request.get_compiled_model().get_runtime_model().get_ordered_ops()
    kinds = [
        operation.input(0).get_element_type().get_type_name()
        for operation in operations
        if operation.rt_info["layerType"].astype(str) == "Convolution"
        and operation.input(1).get_shape()[2:] == [3, 3]
    ]
    assert kinds.count("u8") == 8  # all but the first, which reads the planes


def test_int8_gives_the_same_answers_each_time():
    pytest.importorskip("openvino")
    network = folded()
    planes = some_planes(4)
    first = OpenVINOProgram(network, INT8)(planes)
    for found, expected in zip(OpenVINOProgram(network, INT8)(planes), first):
        numpy.testing.assert_array_equal(found, expected)


def test_filters_of_zeros_and_inputs_that_are_always_zero_stay_zero_in_int8():
    pytest.importorskip("openvino")
    network = folded()
    network.l4.W.array[3] = 0
    network.l6.W.array[...] = network.l6.b.array[...] = 0  # so the input of l7 is always 0
    program = OpenVINOProgram(network, INT8)
    planes = planes_of_random_games(5, network.plane_num)
    for found, expected in zip(program(planes), outputs(network, planes)):
        numpy.testing.assert_allclose(found, expected, atol=0.1 * abs(expected).max())


def test_a_network_that_int8_cannot_compute_exactly_is_refused(monkeypatch):
    """One filter is so much larger than the others that its inputs hide theirs."""
    pytest.importorskip("openvino")
    monkeypatch.setattr(backend_module, "_seconds", lambda forward, planes: own_is_slow(forward))
    network = folded()
    network.l5.W.array[0] *= 1e5
    network.l6.W.array[:, 0] *= 1e-5  # the next layer takes it back, so float32 is exact
    with pytest.raises(BackendError, match="results in int8 differ from the network's by"):
        make_forward(OPENVINO_INT8, network, CPU)
    assert make_forward(AUTO, network, CPU)[0] != OPENVINO_INT8


@pytest.mark.long
def test_int8_needs_a_convolution_after_a_relu():
    pytest.importorskip("openvino")

    class Flat(Network):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.l1 = chainer.links.Linear(self.plane_num * 81, 2187)

        def forward(self, planes):
            return self.l1(planes)

    with pytest.raises(BackendError, match="the network has no 3×3 convolution after a ReLU. Ch"):
        make_forward(OPENVINO_INT8, Flat(), CPU)


def test_openvino_uses_the_threads_of_this_package(monkeypatch):
    pytest.importorskip("openvino")
    for number in (1, 2):
        monkeypatch.setattr(openvino_program, "get_threads", lambda number=number: number)
        model = OpenVINOProgram(folded())._request.get_compiled_model()
        assert model.get_property("INFERENCE_NUM_THREADS") == number
