"""The book's five networks: names, model files in both directions, and the computation."""

import numpy
import pytest
from book_networks import BOOKS
from network_helpers import assert_equal_outputs, make_trained, outputs, randomize, some_planes

from pydlshogi.compat import chainer
from pydlshogi.model_files.model_file import load_model, load_network, save_model
from pydlshogi.network.policy import PolicyNetwork
from pydlshogi.network.policy_bn import PolicyNetwork as PolicyBNNetwork
from pydlshogi.network.policy_value import PolicyValueNetwork
from pydlshogi.network.policy_value_resnet import PolicyValueResnet
from pydlshogi.network.registry import BOOK, make_network, name_of
from pydlshogi.network.value import ValueNetwork

#: The classes that a reader imports, each with its name in the registry.
OURS = {
    "policy": PolicyNetwork,
    "policy_bn": PolicyBNNetwork,
    "value": ValueNetwork,
    "policy_value": PolicyValueNetwork,
    "policy_value_resnet": PolicyValueResnet,
}


def make_books(name, seed=3, **options):
    numpy.random.seed(seed)
    return randomize(BOOKS[name](**options), seed)


def shapes(network):
    arrays = chainer.serializers.npz.serialize(network)
    return {key: numpy.shape(array) for key, array in arrays.items()}


@pytest.mark.long
def test_the_registry_knows_the_five_classes():
    assert set(BOOK) == set(OURS) == set(BOOKS)
    for name, network_class in OURS.items():
        assert type(make_network(name)) is network_class
        assert network_class.__name__ == type(make_network(name)).__name__


def test_star_imports_give_the_names_of_the_book():
    names = {}
    for module in ("policy", "value"):
        exec(f"from pydlshogi.network.{module} import *", names)
    assert (names["PolicyNetwork"], names["ValueNetwork"]) == (PolicyNetwork, ValueNetwork)
    assert (names["ch"], names["fcl"]) == (192, 256)


@pytest.mark.long
@pytest.mark.parametrize("name", BOOK)
def test_the_arrays_are_the_books(name):
    assert shapes(OURS[name]()) == shapes(BOOKS[name]())


@pytest.mark.long
@pytest.mark.parametrize("name", BOOK)
def test_the_same_seed_gives_the_initial_weights_of_chainers_links(name):
    networks = []
    for network_class in (OURS[name], BOOKS[name]):
        numpy.random.seed(11)
        networks.append(chainer.serializers.npz.serialize(network_class()))
    for key, array in networks[1].items():
        numpy.testing.assert_array_equal(networks[0][key], array)


@pytest.mark.parametrize("name", BOOK)
def test_a_file_of_the_book_loads_by_its_arrays_and_computes_the_same(tmp_path, name):
    book, planes = make_books(name), some_planes(5)
    chainer.serializers.save_npz(str(tmp_path / "model"), book)
    network = load_network(tmp_path / "model")
    assert name_of(network) == name
    expected = outputs(book, planes)
    assert_equal_outputs(outputs(network, planes), expected)
    single = [outputs(network, position[None]) for position in planes]
    assert_equal_outputs([numpy.concatenate(rows) for rows in zip(*single)], expected)
    given = make_network(name)
    load_model(tmp_path / "model", given)  # as --initmodel does
    assert_equal_outputs(outputs(given, planes), expected)


@pytest.mark.long
@pytest.mark.parametrize("name", BOOK)
def test_chainer_loads_our_file_into_the_books_class(tmp_path, name):
    network, planes = make_trained(name), some_planes(5)
    save_model(tmp_path / "model", network)
    book = BOOKS[name]()
    with numpy.load(tmp_path / "model") as npz:
        assert {key: npz[key].shape for key in npz.files} == shapes(book)
    chainer.serializers.load_npz(str(tmp_path / "model"), book)
    assert_equal_outputs(outputs(book, planes), outputs(network, planes))


@pytest.mark.long
@pytest.mark.parametrize("blocks", [1, 2, 8])
def test_the_number_of_residual_blocks_is_told_by_the_arrays(tmp_path, blocks):
    book, planes = make_books("policy_value_resnet", blocks=blocks), some_planes(6)
    chainer.serializers.save_npz(str(tmp_path / "model"), book)
    network = load_network(tmp_path / "model")
    assert network.blocks == blocks
    assert_equal_outputs(outputs(network, planes), outputs(book, planes))


@pytest.mark.parametrize("name", ["policy_bn", "policy_value_resnet"])
def test_training_computes_and_moves_the_averages_as_chainers_links_do(name):
    book, network, planes = make_books(name), make_network(name), some_planes(6)
    network.copyparams(book)  # copies the averages too
    for one, other in zip(network(planes), book(planes)):
        numpy.testing.assert_allclose(one.array, other.array, rtol=1e-3, atol=1e-3)
    found, expected = map(chainer.serializers.npz.serialize, (network, book))
    averages = [key for key in expected if "/avg_" in key]
    assert len(averages) == {"policy_bn": 24, "policy_value_resnet": 18}[name]
    for key in averages:
        numpy.testing.assert_allclose(found[key], expected[key], rtol=1e-3, atol=1e-4)
