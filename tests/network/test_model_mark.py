"""Model files say which network they hold."""

import re

import numpy as np
import pytest

from pydlshogi.compat import chainer
from pydlshogi.network.model_file import (
    MARK,
    ModelFileError,
    load_model,
    load_network,
    save_model,
)
from pydlshogi.network.registry import NETWORKS, make_network, name_of


def arrays(network):
    return {
        key: np.copy(value) for key, value in chainer.serializers.npz.serialize(network).items()
    }


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_network_is_made_from_the_file_alone(tmp_path, name):
    network = make_network(name)
    save_model(tmp_path / "model", network)
    loaded = load_network(tmp_path / "model")
    assert name_of(loaded) == name
    assert same(arrays(loaded), arrays(network))


@pytest.mark.parametrize("name", ["policy", "policy_bn", "policy_value_small"])
def test_chainer_loads_every_file_and_the_books_has_no_mark(tmp_path, name):
    network, other = make_network(name), make_network(name)
    save_model(tmp_path / "model", network)
    chainer.serializers.load_npz(str(tmp_path / "model"), other)
    assert same(arrays(other), arrays(network))
    with np.load(tmp_path / "model", allow_pickle=False) as npz:
        assert set(npz.files) - set(arrays(network)) == (set() if name == "policy" else {MARK})
        if name == "policy":
            assert len(npz.files) == 26


def test_a_file_without_a_mark_is_of_the_books_network_or_of_the_one_asked_for(tmp_path):
    for name in ("policy", "policy_value"):
        chainer.serializers.save_npz(str(tmp_path / name), make_network(name))
    assert name_of(load_network(tmp_path / "policy")) == "policy"
    load_model(tmp_path / "policy_value", make_network("policy_value"))
    with pytest.raises(ModelFileError, match="not of the network policy: it has also l13_v/W"):
        load_network(tmp_path / "policy_value")


@pytest.mark.parametrize("held", ["policy_bn", "policy_value", "policy_hand1x1"])
@pytest.mark.parametrize("asked", ["policy", "policy_value_small", "policy_hand1x1_ply"])
def test_a_file_of_another_network_is_refused_by_name_and_nothing_changes(tmp_path, held, asked):
    save_model(tmp_path / "model", make_network(held))
    network = make_network(asked)
    before = arrays(network)
    with pytest.raises(ModelFileError, match=f"is of the network {held}, not of .* {asked}"):
        load_model(tmp_path / "model", network)
    assert same(arrays(network), before)


def test_the_two_forms_of_hand_planes_share_their_files(tmp_path):
    network, other = make_network("policy_hand1x1"), make_network("policy_hand1x1_unpool")
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


@pytest.mark.parametrize("change", [lambda a: a.pop("l1/bn/avg_mean"), lambda a: a.update(x=1)])
def test_missing_and_extra_parameters_are_named(tmp_path, change):
    content = {**arrays(make_network("policy_bn")), MARK: np.array("policy_bn")}
    change(content)
    np.savez(tmp_path / "model.npz", **content)
    with pytest.raises(ModelFileError, match="it lacks l1/bn/avg_mean|it has also x"):
        load_network(tmp_path / "model.npz")
