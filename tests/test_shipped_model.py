"""The model that the engine plays with by default."""

from pathlib import Path

import numpy
import pytest

from pydlshogi.compat import chainer
from pydlshogi.features import make_input_planes
from pydlshogi.files import shipped_model
from pydlshogi.model_files.model_file import load_model, load_network
from pydlshogi.network.policy import PolicyNetwork
from pydlshogi.positions import DRAW, WIN
from pydlshogi.read_kifu import read_kifu

KIFU = Path(__file__).parent.parent / "kifu"


@pytest.mark.long
def test_it_has_learned_to_find_the_moves_of_games_it_has_not_seen():
    network = PolicyNetwork()
    load_model(shipped_model("model_policy"), network)
    positions = read_kifu(KIFU / "kifulist_test.txt").array[::8].copy()
    labels = positions["label"].astype(numpy.int32)
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        accuracy = chainer.functions.accuracy(network(make_input_planes(positions)), labels)
    # Chance finds one move in eighty or so.
    assert accuracy.array > 0.37


def test_the_model_with_two_heads_predicts_moves_and_winners():
    network = load_network(shipped_model("model_policy_value"))
    positions = read_kifu(KIFU / "kifulist_test.txt").array[::8].copy()
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        logits, values = network(make_input_planes(positions, plane_num=network.plane_num))
    labels = positions["label"].astype(numpy.int32)
    assert chainer.functions.accuracy(logits, labels).array > 0.37
    decided = positions["result"] < DRAW
    won = positions["result"][decided] == WIN
    # The side that moves wins about every second game.
    assert numpy.mean((values.array[decided, 0] > 0) == won) > 0.6


@pytest.mark.parametrize("name", ["model_policy", "model_policy_value"])
def test_it_is_small_enough_to_travel(name):
    assert shipped_model(name).stat().st_size < 16 * 2**20
