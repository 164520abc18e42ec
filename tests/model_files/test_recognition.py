"""Which network a file holds: told by its mark, or by the names of its arrays."""

import numpy
import pytest
from network_helpers import make_trained, outputs, some_planes

from pydlshogi.compat import chainer
from pydlshogi.model_files.model_file import MARK, load_network, recognize
from pydlshogi.network.registry import NETWORKS, form_of, make_network, name_of


def save_marked(path, network, name):
    arrays = chainer.serializers.npz.serialize(network)
    numpy.savez(path, **arrays, **{MARK: numpy.array(name)})


@pytest.mark.parametrize("name", ["policy_value", "policy_value_small", "policy_hand1x1"])
def test_a_mark_that_the_arrays_would_tell_too_is_accepted(tmp_path, name):
    network, planes = make_trained(name), some_planes()
    save_marked(tmp_path / "model.npz", network, name)
    loaded = load_network(tmp_path / "model.npz")
    assert name_of(loaded) == name
    for found, expected in zip(outputs(loaded, planes), outputs(network, planes)):
        numpy.testing.assert_array_equal(found, expected)


@pytest.mark.long
def test_every_network_is_recognized_by_its_names():
    for name in NETWORKS:
        assert recognize(chainer.serializers.npz.serialize(make_network(name))) == form_of(name)
    for arrays in ({}, {"l1/W": 0}, {"l13/W": 0, "t": 0}):
        assert recognize(arrays) is None
