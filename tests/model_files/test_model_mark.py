"""Model files tell which network they hold: by a mark, or by the names of their arrays."""

import re

import numpy as np
import pytest
from network_helpers import narrow

from pydlshogi.compat import chainer
from pydlshogi.model_files.model_file import (
    MARK,
    ModelFileError,
    load_model,
    load_network,
    save_model,
)
from pydlshogi.network.registry import BOOK, NETWORKS, form_of, make_network, name_of


def arrays(network):
    return {
        key: np.copy(value) for key, value in chainer.serializers.npz.serialize(network).items()
    }


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_network_is_made_from_the_file_alone(tmp_path, name):
    network = make_network(name, **narrow(name))
    save_model(tmp_path / "model", network)
    loaded = load_network(tmp_path / "model")
    assert name_of(loaded) == name
    assert same(arrays(loaded), arrays(network))


@pytest.mark.parametrize("name", NETWORKS)
def test_chainer_loads_every_file_and_the_books_have_no_mark(tmp_path, name):
    network, other = (make_network(name, **narrow(name)) for _ in range(2))
    save_model(tmp_path / "model", network)
    chainer.serializers.load_npz(str(tmp_path / "model"), other)
    assert same(arrays(other), arrays(network))
    with np.load(tmp_path / "model", allow_pickle=False) as npz:
        assert set(npz.files) - set(arrays(network)) == (set() if name in BOOK else {MARK})


@pytest.mark.long
@pytest.mark.parametrize("name", NETWORKS)
def test_the_arrays_of_a_file_without_a_mark_tell_the_network(tmp_path, name):
    network = make_network(name, **narrow(name))
    chainer.serializers.save_npz(str(tmp_path / "model"), network)
    loaded = load_network(tmp_path / "model")
    assert name_of(loaded) == form_of(name)
    assert same(arrays(loaded), arrays(network))


@pytest.mark.long
@pytest.mark.parametrize("name", NETWORKS)
def test_a_file_of_half_the_size_holds_the_same_network_rounded(tmp_path, name):
    network = make_network(name, **narrow(name, 64))  # names take little of such a file
    for half in (False, True):
        save_model(tmp_path / str(half), network, half=half)
    sizes = [(tmp_path / str(half)).stat().st_size for half in (False, True)]
    assert sizes[1] < 0.51 * sizes[0]
    loaded = load_network(tmp_path / "True")
    assert name_of(loaded) == name
    found = arrays(loaded)
    for key, array in arrays(network).items():
        assert found[key].dtype == array.dtype
        rounded = array.astype(np.float16) if array.dtype.kind == "f" else array
        np.testing.assert_array_equal(found[key], rounded)


def test_a_counter_that_is_not_whole_is_refused_in_a_sentence(tmp_path):
    content = {**arrays(make_network("policy_bn", channels=8)), "norm3/N": np.float32(0.5)}
    np.savez(tmp_path / "model.npz", **content)
    with pytest.raises(ModelFileError, match="norm3/N holds float32"):
        load_network(tmp_path / "model.npz")


def test_a_file_of_unknown_arrays_is_compared_with_the_books_policy_network(tmp_path):
    np.savez(tmp_path / "model.npz", weights=np.zeros(3))
    with pytest.raises(ModelFileError, match="not of the network policy: it lacks l1/W.*weights"):
        load_network(tmp_path / "model.npz")


@pytest.mark.parametrize("shape", [(), (0, 104, 3, 3), (10**7, 0, 3, 3), (192,), (192, 104, 9)])
@pytest.mark.parametrize("key, other", [("l1/W", "l13/W"), ("l1/pieces/W", "l13/W")])
def test_absurd_sizes_are_named_and_no_network_of_such_a_size_is_made(tmp_path, shape, key, other):
    np.savez(tmp_path / "model.npz", **{key: np.zeros(shape), other: np.zeros(1)})
    with pytest.raises(ModelFileError, match="it lacks"):
        load_network(tmp_path / "model.npz")


@pytest.mark.parametrize("held", ["policy_bn", "policy_value", "policy_hand1x1"])
@pytest.mark.parametrize("asked", ["policy", "policy_value_small", "policy_value_resnet"])
def test_a_file_of_another_network_is_refused_by_name_and_nothing_changes(tmp_path, held, asked):
    save_model(tmp_path / "model", make_network(held, channels=8))
    network = make_network(asked, **narrow(asked))
    before = arrays(network)
    with pytest.raises(ModelFileError, match=f"is of the network {held}, not of .* {asked}"):
        load_model(tmp_path / "model", network)
    assert same(arrays(network), before)


def test_the_two_forms_of_hand_planes_share_their_files(tmp_path):
    network, other = (
        make_network(name, channels=8) for name in ("policy_hand1x1", "policy_hand1x1_unpool")
    )
    save_model(tmp_path / "model", network)
    load_model(tmp_path / "model", other)
    assert same(arrays(other), arrays(network))
    save_model(tmp_path / "model", other)
    assert name_of(load_network(tmp_path / "model")) == "policy_hand1x1_unpool"


@pytest.mark.parametrize("mark", ["policy_huge", "", "x" * 1000, "two\nlines"])
def test_a_network_that_is_not_known_is_named_with_those_that_are(tmp_path, mark):
    np.savez(tmp_path / "model.npz", **{MARK: np.array(mark)})
    with pytest.raises(ModelFileError, match=re.escape(", ".join(NETWORKS))) as error:
        load_network(tmp_path / "model.npz")
    assert "model.npz" in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("mark", [np.arange(3), np.array(["policy_bn"] * 2), np.float32(1)])
def test_a_mark_that_is_no_name_is_refused(tmp_path, mark):
    np.savez(tmp_path / "model.npz", **{MARK: mark})
    with pytest.raises(ModelFileError, match="does not say which network"):
        load_network(tmp_path / "model.npz")


@pytest.mark.parametrize("change", [lambda a: a.pop("norm1/avg_mean"), lambda a: a.update(x=1)])
def test_missing_and_extra_parameters_are_named(tmp_path, change):
    content = {**arrays(make_network("policy_bn", channels=8)), MARK: np.array("policy_bn")}
    change(content)
    np.savez(tmp_path / "model.npz", **content)
    with pytest.raises(ModelFileError, match="it lacks norm1/avg_mean|it has also x"):
        load_network(tmp_path / "model.npz")
