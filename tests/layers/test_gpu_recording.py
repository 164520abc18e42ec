"""Recordings of a GPU's work, and the forward pass that uses them."""

import numpy
import pytest
from network_helpers import assert_equal_outputs, make_trained, outputs, some_planes
from recordings import must_record, repeat_on_cpu

from pydlshogi.compat import chainer
from pydlshogi.inference import gpu_forward as forward
from pydlshogi.inference.evaluator import Evaluator
from pydlshogi.inference.gpu_forward import Forward, padded_size
from pydlshogi.layers.gpu.products import get_precision, set_precision
from pydlshogi.layers.gpu.recording import VARIABLE, Memory, Recording, can_record
from pydlshogi.model_files.fold import fold_for_play
from pydlshogi.model_files.model_file import save_model
from pydlshogi.network.network import Network


def in_play(network, planes):
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        return network(planes)


def test_a_padded_size_has_at_most_half_as_many_positions_again():
    sizes = [padded_size(count) for count in range(1, 1025)]
    assert all(count <= size < max(2, 1.5 * count) for count, size in enumerate(sizes, 1))
    assert sizes == sorted(sizes) and len(set(sizes)) == 20


@pytest.mark.parametrize("name", ["policy", "value", "policy_value", "policy_value_history_bn"])
def test_batches_of_all_sizes_get_the_outputs_of_the_network(monkeypatch, name):
    repeat_on_cpu(monkeypatch)
    monkeypatch.setattr(forward, "_MOST", 8)
    network = fold_for_play(make_trained(name, channels=8))
    ours = Forward(network)
    for seed, count in enumerate([1, 3, 1, 8, 5, 7, 6, 5, 20, 3, 1, 2]):
        planes = some_planes(count, seed, network.plane_num)
        found = in_play(ours, planes)
        assert [len(output) for output in found] == [count] * len(found)
        for one, other in zip(found, outputs(network, planes)):
            # Other batch sizes are computed in another order: relative to the outputs' spread.
            numpy.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * max(1, other.std()))


class Refused:
    """A function that a GPU cannot record."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return [numpy.full(2, self.calls)]


@pytest.mark.parametrize("error", [NotImplementedError, MemoryError, RuntimeError])
def test_what_cannot_be_recorded_runs_in_each_call(monkeypatch, error):
    class Cupy:
        """Has a stream that refuses."""

        class cuda:
            Stream = MemoryPool = lambda **kwargs: Cupy

        malloc = None

        @staticmethod
        def get_default_memory_pool():
            raise error("cannot be recorded")

    monkeypatch.setitem(__import__("sys").modules, "cupy", Cupy)
    function = Refused()
    recording = Recording(function, Memory())
    assert [recording()[0][0] for _ in range(4)] == [1, 2, 3, 4]
    assert not recording.is_recorded


def test_networks_of_this_package_are_recorded_on_request(monkeypatch):
    class Own(Network):
        """A class outside of this package."""

    class Gpu:
        xp = "cupy"

    cpu = chainer.get_device("@numpy")
    ours = make_trained("policy", channels=8)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert not can_record(ours, Gpu)
    monkeypatch.setenv(VARIABLE, "1")
    assert can_record(ours, Gpu) and can_record(fold_for_play(ours), Gpu)
    assert not can_record(ours, cpu)
    assert not can_record(Own(), Gpu)


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("name", ["policy", "policy_value", "policy_value_history_bn"])
def test_a_gpu_repeats_a_recorded_forward_pass(device, name, precision):
    if device.xp is numpy:
        pytest.skip("recordings are those of a GPU")
    network = fold_for_play(make_trained(name, channels=16))
    network.to_device(device)
    ours = Forward(network)
    before = get_precision()
    set_precision(precision)
    try:
        for seed, count in enumerate([3, 3, 5, 3, 5, 6, 8, 3, 6]):
            planes = some_planes(count, seed, network.plane_num)
            found = in_play(ours, planes)
            expected = [output.get() for output in outputs(network, device.send(planes))]
            assert_equal_outputs(found, expected)
        used_again = [ours._recorded[size, precision][1] for size in (3, 6)]
        assert all(recording.is_recorded == must_record() for recording in used_again)
    finally:
        set_precision("auto" if before == "float32" else before)


def test_an_evaluator_of_a_gpu_records_on_request(tmp_path, monkeypatch, device):
    if device.xp is numpy:
        pytest.skip("recordings are those of a GPU")
    save_model(tmp_path / "model", make_trained("policy_value", channels=16))
    plain = Evaluator(tmp_path / "model", device)
    monkeypatch.setenv(VARIABLE, "1")
    recorded = Evaluator(tmp_path / "model", device)
    assert plain._forward is None and type(recorded._forward) is Forward
    for seed, count in enumerate([2, 2, 5, 2, 5]):
        planes = some_planes(count, seed)
        for one, other in zip(recorded.evaluate(planes), plain.evaluate(planes)):
            numpy.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_an_earlier_answer_of_a_gpu_does_not_change(device):
    if device.xp is numpy:
        pytest.skip("recordings are those of a GPU")
    network = make_trained("policy", channels=8)
    network.to_device(device)
    ours = Forward(network)
    planes = [some_planes(3, seed) for seed in range(4)]
    answers = [in_play(ours, one)[0] for one in planes]
    kept = [answer.copy() for answer in answers]
    in_play(ours, planes[0])
    numpy.testing.assert_array_equal(answers, kept)


def test_a_gpu_uses_no_memory_of_a_recording_for_other_arrays(device):
    if device.xp is numpy:
        pytest.skip("recordings are those of a GPU")
    xp = device.xp
    x = xp.arange(1000, dtype=numpy.float32)
    recording = Recording(lambda: [((x + 1) * 2).sum(), x * 3], Memory())
    recording()
    recording()
    assert recording.is_recorded == must_record()
    for number in range(5):
        x[...] = xp.full(1000, number, numpy.float32)
        others = [xp.full(1000, 9, numpy.float32) for _ in range(50)]
        total, product = recording()
        assert float(total) == 2000 * (number + 1)
        assert float(product.min()) == float(product.max()) == 3 * number
        assert all(float(other.min()) == float(other.max()) == 9 for other in others)
