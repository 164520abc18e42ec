"""The program train_policy with every kind of network."""

import re
from pathlib import Path

import numpy
import pytest
from training_helpers import assert_same_files

from pydlshogi.commands.train_policy import main
from pydlshogi.compat import chainer
from pydlshogi.model_files.model_file import load_network, save_model
from pydlshogi.network.registry import NETWORKS, make_network, name_of
from pydlshogi.training.log import read_log
from pydlshogi.training.state import Place, State, fingerprint


def call(options):
    return main(["train.txt", "test.txt", "--gpu", "-1", *options.split()])


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["policy_bn", "policy_hand1x1_unpool", "value", "policy_value_small"]
)
def test_a_network_is_trained_saved_and_resumed(folder, name):
    size = "" if name == "policy_value_small" else "--channels 16 "
    files = f"{size}--model m --state s --log log -i 1 -b 4 --test_batchsize 64 --seed 1"
    assert call(f"--network {name} {files} --iterations 2") == 0
    assert name_of(load_network("m")) == name
    assert call(f"--network {name} {files} --iterations 1 -m m -r s") == 0
    (curve,) = read_log(Path("log").read_text(encoding="utf-8").splitlines())
    assert [point.iteration for point in curve.progress] == [1, 2, 3]
    for point in curve.progress:
        assert numpy.isfinite(point.loss)
        assert (point.value_loss is not None) == name.startswith("policy_value")
        assert (point.value_accuracy is not None) == name.startswith("policy_value")
        assert point.value_loss is None or numpy.isfinite(point.value_loss)


@pytest.mark.long
def test_a_run_that_begins_with_the_identity_is_resumed_to_the_last_bit(folder):
    options = (
        "--network policy_hand1x1_bn --channels 16 --dirac -i 1 -b 4 --test_batchsize 8 --seed 1"
    )
    assert call(f"{options} --model m --state s --iterations 2") == 0
    assert call(f"{options} --model m2 --state s2 --iterations 1") == 0
    assert call(f"{options} --model m2 --state s2 --iterations 1 -m m2 -r s2") == 0
    assert_same_files("m", "m2")
    network = load_network("m")
    own = numpy.arange(16)
    for n in range(2, 13):
        assert (network[f"l{n}"].conv.W.array[own, own, 1, 1] > 0.8).all()


def test_a_network_that_cannot_begin_with_the_identity_gets_one_sentence(folder, capsys):
    assert call("--network policy_value_small --dirac --model m --state s") == 1
    error = capsys.readouterr().err
    assert "policy_value_small has none. Leave it out." in error
    assert "Traceback" not in error
    assert not Path("m").exists()


def test_an_unknown_network_lists_the_known_ones(folder, capsys):
    with pytest.raises(SystemExit) as status:
        call("--network policy_huge")
    assert status.value.code == 2
    sentence = capsys.readouterr().err.splitlines()[-1]
    assert "policy_huge" in sentence
    assert all(re.search(rf"\b{name}\b", sentence) for name in NETWORKS)


@pytest.mark.parametrize("asked", ["policy", "policy_value_small"])
def test_a_model_of_another_network_is_refused_before_anything_starts(folder, capsys, asked):
    network = make_network("policy_bn")
    save_model("m", network)
    optimizer = chainer.serializers.npz.serialize(chainer.optimizers.SGD().setup(network))
    chainer.serializers.save_npz("books", optimizer)
    place = Place(fingerprint(network), train=0, seed=0, epoch=0, position=0, losses={})
    chainer.serializers.save_npz("ours", State(optimizer, place).to_arrays())
    for more in ("", " -r books", " -r ours"):
        assert call(f"--network {asked} --model new --state new.state -m m{more}") == 1
        error = capsys.readouterr().err
        assert "model file m is of the network policy_bn, not of the network " + asked in error
        assert "read kifu start" not in error
        assert "Traceback" not in error
    assert not Path("new").exists()


def test_a_training_set_without_results_is_told_to_a_network_with_a_value_head(folder, capsys):
    # A record without an end mark and a summary has no known result.
    for game in folder.glob("*.csa"):
        lines = game.read_text(encoding="utf-8").splitlines()
        game.write_text("\n".join(line for line in lines if line[0] not in "%'"), encoding="utf-8")
    options = "--iterations 1 -b 4 --test_batchsize 64 --log log --network"
    assert call(f"{options} policy_value_small") == 0
    assert "the value head learns nothing" in Path("log").read_text(encoding="utf-8")
