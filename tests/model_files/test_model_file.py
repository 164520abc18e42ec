"""Model files: saved and loaded without loss; files that do not fit are refused."""

import os
import pickle
import tracemalloc

import numpy
import pytest

from pydlshogi.compat import chainer
from pydlshogi.model_files import model_file
from pydlshogi.network.network import arrays_of
from pydlshogi.network.registry import make_network


class Small(chainer.Chain):
    def __init__(self, out=4):
        super().__init__()
        with self.init_scope():
            self.l1 = chainer.links.Linear(3, out)
            self.l2 = chainer.links.Linear(4, 2)


def arrays(network):
    return {name: param.array.copy() for name, param in network.namedparams()}


def same(one, other):
    return one.keys() == other.keys() and all(numpy.array_equal(one[k], other[k]) for k in one)


def test_save_then_load_is_identity(tmp_path):
    path = tmp_path / "a model 模型"
    network, other = Small(), Small()
    model_file.save_model(path, network)
    model_file.load_model(path, other)
    assert same(arrays(network), arrays(other))
    assert os.listdir(tmp_path) == [path.name]


def test_chainers_own_files_are_the_same(tmp_path):
    network, other, third = Small(), Small(), Small()
    chainer.serializers.save_npz(str(tmp_path / "theirs.npz"), network)
    model_file.load_model(tmp_path / "theirs.npz", other)
    model_file.save_model(tmp_path / "ours.npz", network)
    chainer.serializers.load_npz(str(tmp_path / "ours.npz"), third)
    assert same(arrays(network), arrays(other))
    assert same(arrays(network), arrays(third))


def test_float16_storage_is_read_into_float32(tmp_path):
    network, other = Small(), Small()
    halves = {k.lstrip("/"): v.astype(numpy.float16) for k, v in arrays(network).items()}
    numpy.savez(tmp_path / "half.npz", **halves)
    model_file.load_model(tmp_path / "half.npz", other)
    for name, array in arrays(other).items():
        assert array.dtype == numpy.float32
        assert numpy.array_equal(array, halves[name.lstrip("/")].astype(numpy.float32))


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda a: a.pop("l2/b"), "it lacks l2/b"),
        (lambda a: a.update(extra=numpy.zeros(1)), "it has also extra"),
        (lambda a: a.update({"l1/W": numpy.zeros((5, 3))}), "l1/W has shape"),
        (lambda a: a.update({"l1/b": numpy.array(["x"] * 4)}), "l1/b holds <U1"),
    ],
)
def test_a_file_of_another_network_is_refused_and_nothing_changes(tmp_path, change, words):
    network = Small()
    content = {k.lstrip("/"): v for k, v in arrays(network).items()}
    change(content)
    numpy.savez(tmp_path / "other.npz", **content)
    before = arrays(network)
    with pytest.raises(model_file.ModelFileError, match="other.npz is not of a Small") as error:
        model_file.load_model(tmp_path / "other.npz", network)
    assert words in str(error.value)
    assert same(before, arrays(network))


def test_a_state_file_is_refused_as_what_it_is(tmp_path):
    network = Small()
    optimizer = chainer.optimizers.SGD().setup(network)
    optimizer.update(lambda x: chainer.functions.sum(network.l1(x)), numpy.ones((2, 3), "f"))
    chainer.serializers.save_npz(tmp_path / "state.npz", optimizer)
    with pytest.raises(model_file.ModelFileError, match="state.npz holds the state of"):
        model_file.load_model(tmp_path / "state.npz", network)


class Evil:
    def __reduce__(self):
        return (os.mkdir, ("executed",))


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04broken", pickle.dumps(Evil())])
def test_what_is_no_npz_is_refused_and_not_executed(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(model_file.ModelFileError, match="cannot be read|is not a Chainer npz"):
        model_file.load_model(tmp_path / "file", Small())
    assert not (tmp_path / "executed").exists()


def test_a_pickled_object_in_an_npz_is_not_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    numpy.savez(tmp_path / "x.npz", **{"l1/W": numpy.array([Evil()], dtype=object)})
    with pytest.raises(model_file.ModelFileError, match="cannot be read"):
        model_file.load_model(tmp_path / "x.npz", Small())
    assert not (tmp_path / "executed").exists()


def test_a_truncated_file_is_refused(tmp_path):
    model_file.save_model(tmp_path / "m", Small())
    whole = (tmp_path / "m").read_bytes()
    for length in range(0, len(whole), 97):
        (tmp_path / "m").write_bytes(whole[:length])
        with pytest.raises(model_file.ModelFileError):
            model_file.load_model(tmp_path / "m", Small())


def test_a_damaged_file_is_refused(tmp_path):
    chainer.serializers.save_npz(str(tmp_path / "m"), Small())
    damaged = bytearray((tmp_path / "m").read_bytes())
    # The compressed content of the first array starts a few bytes after its name.
    start = damaged.index(b".npy") + 4
    damaged[start : start + 40] = bytes(40)
    (tmp_path / "m").write_bytes(damaged)
    with pytest.raises(model_file.ModelFileError, match="cannot be read"):
        model_file.load_model(tmp_path / "m", Small())


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(model_file.ModelFileError, match="does not exist"):
        model_file.load_model(tmp_path / "none", Small())
    with pytest.raises(model_file.ModelFileError, match="is a folder, not a file"):
        model_file.load_model(tmp_path, Small())


@pytest.mark.long
@pytest.mark.parametrize("name, blocks", [("policy", 0), ("policy_value_resnet", 2_000)])
def test_a_file_that_claims_a_huge_network_takes_no_memory_for_it(tmp_path, name, blocks):
    arrays = arrays_of(make_network(name, channels=2))
    arrays["l1/W"] = numpy.zeros((4096, 104, 3, 3), numpy.float32)
    arrays.update({f"b{number}/conv1/W": numpy.zeros(1) for number in range(1, blocks)})
    numpy.savez_compressed(tmp_path / "file.npz", **arrays)
    tracemalloc.start()
    try:
        with pytest.raises(model_file.ModelFileError, match="is not of the network"):
            model_file.load_network(tmp_path / "file.npz")
        assert tracemalloc.get_traced_memory()[1] < 1 << 28
    finally:
        tracemalloc.stop()
