"""Batch normalization folded into the convolutions."""

import copy

import numpy
import pytest
from network_helpers import assert_equal_outputs, make_trained, narrow, outputs, some_planes

from pydlshogi.compat import chainer
from pydlshogi.inference.evaluator import Evaluator
from pydlshogi.layers.blocks import ResidualBlock
from pydlshogi.model_files.fold import FOLDABLE, FoldError, fold, fold_for_play
from pydlshogi.model_files.model_file import save_model
from pydlshogi.network.policy import PolicyNetwork
from pydlshogi.network.policy_value import PolicyValueNetwork
from pydlshogi.network.registry import NETWORKS, make_network

WITH_NORMALIZATION = (
    "policy_bn",
    "policy_hand1x1_bn",
    "policy_value_resnet",
    "policy_value_hand1x1_bn",
    "policy_value_hand1x1_resnet",
    "policy_value_history_bn",
    "policy_value_history_resnet",
)


def normalizations(network):
    return [link for link in network.links() if isinstance(link, chainer.links.BatchNormalization)]


@pytest.mark.long
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_folded_for_play_computes_the_same_without_normalization(name):
    network = make_trained(name, **narrow(name, 16))
    planes = some_planes(plane_num=network.plane_num)
    folded = fold_for_play(network)
    assert bool(normalizations(network)) == (name in WITH_NORMALIZATION)
    assert not normalizations(folded)
    assert_equal_outputs(outputs(folded, planes), outputs(network, planes))
    # A batch of one takes another method.
    assert_equal_outputs(
        [numpy.concatenate(rows) for rows in zip(*(outputs(folded, p[None]) for p in planes))],
        outputs(network, planes),
    )


@pytest.mark.parametrize("name", WITH_NORMALIZATION)
def test_folding_leaves_the_network_itself_unchanged(name):
    network = make_trained(name, **narrow(name, 16))
    before = copy.deepcopy(chainer.serializers.npz.serialize(network))
    fold_for_play(network)
    after = chainer.serializers.npz.serialize(network)
    assert before.keys() == after.keys()
    for key, array in before.items():
        numpy.testing.assert_array_equal(after[key], array)


class PreActivation(ResidualBlock):
    """A block of a user, which normalizes before its convolutions."""

    def forward(self, x):
        return x + self.conv2(self.bn2(self.conv1(self.bn1(x))))


def test_a_users_block_is_not_folded_and_plays_as_it_was_trained():
    network = make_trained("policy_value_resnet", channels=16)
    for link in network.links():
        if type(link) is ResidualBlock:
            link.__class__ = PreActivation
    planes = some_planes(plane_num=network.plane_num)
    folded = fold_for_play(network)
    assert 0 < len(normalizations(folded)) < len(normalizations(network))
    assert_equal_outputs(outputs(folded, planes), outputs(network, planes))


def test_a_network_without_normalization_is_returned_itself():
    network = make_network("policy_value", channels=8)
    assert fold_for_play(network) is network


@pytest.mark.parametrize("name", WITH_NORMALIZATION)
def test_a_folded_network_is_returned_itself(name):
    folded = fold_for_play(make_trained(name, channels=8))
    assert fold_for_play(folded) is folded


def test_a_folded_network_computes_on_a_device(device):
    network, planes = make_trained("policy_value_resnet", channels=16), some_planes()
    expected = outputs(network, planes)
    found = outputs(fold_for_play(network).to_device(device), device.send(planes))
    assert_equal_outputs([chainer.backends.cuda.to_cpu(array) for array in found], expected)


@pytest.mark.long
@pytest.mark.parametrize("name", WITH_NORMALIZATION)
def test_the_evaluator_plays_without_normalization(tmp_path, monkeypatch, name):
    save_model(tmp_path / "model", make_trained(name, channels=16))

    def forward(*args, **kwargs):
        raise AssertionError("a batch normalization was computed")

    evaluator = Evaluator(tmp_path / "model", chainer.get_device("@numpy"))
    monkeypatch.setattr(chainer.links.BatchNormalization, "forward", forward)
    assert numpy.isfinite(
        evaluator.evaluate(some_planes(plane_num=evaluator.plane_num)).logits
    ).all()


@pytest.mark.parametrize("name", FOLDABLE)
def test_the_books_network_computes_the_policy_of_its_relatives(name):
    network, planes = make_trained(name, **narrow(name, 16)), some_planes()
    folded = fold(network)
    assert type(folded) is PolicyNetwork
    assert_equal_outputs(outputs(folded, planes), outputs(network, planes)[:1])


@pytest.mark.parametrize("name", ["policy_value", "policy_value_hand1x1_bn"])
def test_the_books_network_with_two_heads_computes_both_heads_of_its_relatives(name):
    network, planes = make_trained(name, **narrow(name, 16)), some_planes()
    folded = fold(network, keep_value=True)
    assert type(folded) is PolicyValueNetwork
    assert_equal_outputs(outputs(folded, planes), outputs(network, planes))


@pytest.mark.parametrize("name", ["policy", "policy_bn"])
def test_a_value_head_that_is_missing_cannot_be_kept(name):
    with pytest.raises(FoldError, match="no value head to keep. Keep the policy alone"):
        fold(make_network(name, channels=8), keep_value=True)


def test_the_books_network_of_another_width_stays_in_its_width():
    network, planes = make_trained("policy_hand1x1_bn", channels=24), some_planes()
    folded = fold(network)
    assert folded.l5.W.shape == (24, 24, 3, 3)
    assert_equal_outputs(outputs(folded, planes), outputs(network, planes))


@pytest.mark.parametrize("name", sorted(set(NETWORKS) - {"policy", *FOLDABLE}))
def test_a_network_that_the_book_s_cannot_compute_is_refused_by_name(name):
    with pytest.raises(FoldError, match=f"a {name} network cannot.*the network policy_bn, "):
        fold(make_network(name, **narrow(name)))
