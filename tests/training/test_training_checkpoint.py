"""Model and state: a pair at every moment."""

import os
import pickle
import re

import numpy
import pytest
from training_helpers import (
    assert_same_parameters,
    make_network,
    make_optimizer,
    parameters,
    run,
)

from pydlshogi import files
from pydlshogi.compat import chainer
from pydlshogi.files import next_to
from pydlshogi.model_files.model_file import ModelFileError, load_model
from pydlshogi.network.registry import make_network as make_named_network
from pydlshogi.training.checkpoint import PairWriter, SaveError, finish_save, load_pair
from pydlshogi.training.state import Place, State, StateFileError, fingerprint


class Killed(BaseException):
    """Stands for a SIGKILL."""


@pytest.fixture
def paths(tmp_path):
    return tmp_path / "model", tmp_path / "state"


def save(paths, network, t):
    """Saves a network and an optimizer at iteration ``t``."""
    optimizer = make_optimizer(network)
    optimizer.t = t
    place = Place(fingerprint(network), train=0, seed=0, epoch=0, position=0, losses={})
    state = State(chainer.serializers.npz.serialize(optimizer), place)
    PairWriter(network, *paths)("", "", state.to_arrays())


def load(paths):
    network = make_network(99)
    optimizer = make_optimizer(network)
    load_pair(*paths, network, optimizer)
    return network, optimizer


def test_what_was_saved_is_loaded(paths):
    saved = make_network(1)
    save(paths, saved, 7)
    network, optimizer = load(paths)
    assert_same_parameters(network, saved)
    assert optimizer.t == 7


@pytest.mark.parametrize("step", range(6))
def test_killed_at_any_step_of_a_save_the_pair_is_the_old_or_the_new(paths, monkeypatch, step):
    # Every save renames three files; a kill may come before and after each of them.
    old, new = make_network(1), make_network(2)
    save(paths, old, 1)
    replace, left = os.replace, [step]

    def killed_replace(source, target):
        for moment in range(2):
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            if moment == 0:
                replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed_replace)
        with pytest.raises(Killed):
            save(paths, new, 2)
    network, optimizer = load(paths)
    assert optimizer.t in (1, 2)
    assert_same_parameters(network, old if optimizer.t == 1 else new)
    # From then on the pair is whole without the help of a third file.
    for name in paths[0].parent.iterdir():
        if name not in paths:
            name.unlink()
    assert load(paths)[1].t == optimizer.t


def kill_before_renaming_to(target, paths, network, iteration, monkeypatch):
    rename = os.replace

    def killed(source, to):
        if to == target:
            raise Killed
        rename(source, to)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(os, "replace", killed)
        save(paths, network, iteration)


def kill_before_the_last_step(paths, network, iteration, monkeypatch):
    kill_before_renaming_to(paths[0], paths, network, iteration, monkeypatch)


@pytest.mark.parametrize("before", [None, b"no model", chainer.links.Bias(shape=(3,))])
def test_killed_before_the_last_step_of_the_first_save_the_pair_is_there(
    paths, monkeypatch, before
):
    # The file at the model's path may be nothing, or anything that is not this run's.
    if isinstance(before, bytes):
        paths[0].write_bytes(before)
    elif before is not None:
        chainer.serializers.save_npz(str(paths[0]), before)
    kill_before_the_last_step(paths, make_network(1), 1, monkeypatch)
    network, optimizer = load(paths)
    assert optimizer.t == 1
    assert_same_parameters(network, make_network(1))
    assert sorted(paths[0].parent.iterdir()) == sorted(paths)


def test_a_model_that_waits_for_another_state_is_not_taken(paths):
    save(paths, make_network(1), 1)
    paths[0].rename(f"{paths[0]}.away")
    chainer.serializers.save_npz(f"{paths[0]}.next", make_network(2))
    with pytest.raises(ModelFileError, match="does not exist"):
        load(paths)


def test_killed_in_two_saves_in_turn(paths, monkeypatch):
    # The second save must not overwrite the model that the first one's state needs.
    save(paths, make_network(1), 1)
    kill_before_the_last_step(paths, make_network(2), 2, monkeypatch)
    load(paths)
    kill_before_renaming_to(paths[1], paths, make_network(3), 3, monkeypatch)
    network, optimizer = load(paths)
    assert optimizer.t == 2
    assert_same_parameters(network, make_network(2))


def test_a_model_that_is_open_elsewhere_for_a_moment_is_replaced(paths, monkeypatch):
    save(paths, make_network(1), 1)
    rename, left = os.replace, [2]

    def refusing(source, target):
        if target == paths[0] and left[0]:
            left[0] -= 1
            raise PermissionError(13, "Access is denied")
        rename(source, target)

    monkeypatch.setattr(os, "replace", refusing)
    save(paths, make_network(2), 2)
    assert left == [0]
    assert_same_parameters(load(paths)[0], make_network(2))


def test_a_model_that_stays_open_elsewhere_is_named_and_its_program_to_be_closed(
    paths, monkeypatch
):
    save(paths, make_network(1), 1)
    rename = os.replace

    def refusing(source, target):
        if target == paths[0]:
            # As Windows has it: 13 is the number that Python gives its 5 and 32.
            raise PermissionError(13, "Access is denied", str(source), None, str(target))
        rename(source, target)

    with monkeypatch.context() as patch, pytest.raises(SaveError) as caught:
        patch.setattr(files, "_PAUSES", ())
        patch.setattr(os, "replace", refusing)
        save(paths, make_network(2), 2)
    assert str(caught.value) == (
        f"{paths[0]} cannot be written: Access is denied. Close the program that has it open."
    )
    assert load(paths)[1].t == 2


@pytest.mark.parametrize("name", [None, "policy_bn"])
def test_a_save_that_was_killed_before_its_last_step_is_finished(paths, monkeypatch, name):
    # A named network has its mark in the file, and numbers that are no arrays.
    old, new = (make_named_network(name) if name else make_network(seed) for seed in (1, 2))
    save(paths, old, 1)
    kill_before_the_last_step(paths, new, 2, monkeypatch)
    finish_save(*paths)
    assert sorted(paths[0].parent.iterdir()) == sorted(paths)
    load_model(paths[0], old)
    assert_same_parameters(old, new)


@pytest.mark.parametrize("state", [None, b"no state", make_optimizer(make_network(3))])
def test_a_model_that_waits_for_no_state_that_is_there_stays(paths, monkeypatch, state):
    save(paths, make_network(1), 1)
    kill_before_the_last_step(paths, make_network(2), 2, monkeypatch)
    paths[1].unlink()
    if isinstance(state, bytes):
        paths[1].write_bytes(state)
    elif state is not None:
        chainer.serializers.save_npz(str(paths[1]), state)
    before = paths[0].read_bytes()
    finish_save(*paths)
    assert paths[0].read_bytes() == before
    assert paths[0].with_name("model.next").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows lets few users make links")
def test_a_save_does_not_follow_a_link_beside_the_model(paths):
    other = paths[0].with_name("other")
    other.write_text("another file")
    next_to(paths[0]).symlink_to(other)
    save(paths, make_network(), 1)
    assert other.read_text() == "another file"
    assert not paths[0].is_symlink() and load(paths)


def test_no_file_is_left_but_the_pair(paths):
    for t in (1, 2):
        save(paths, make_network(t), t)
    assert sorted(paths[0].parent.iterdir()) == sorted(paths)


def test_the_model_file_is_the_networks_arrays_and_chainer_loads_both(paths):
    network, optimizer, _ = run(paths[0].parent)
    with numpy.load(paths[0], allow_pickle=False) as npz:
        assert set(npz.files) == set(parameters(network))
    other = make_network(99)
    other_optimizer = make_optimizer(other)
    chainer.serializers.load_npz(str(paths[0]), other)
    chainer.serializers.load_npz(str(paths[1]), other_optimizer)
    assert_same_parameters(other, network)
    assert (other_optimizer.t, other_optimizer.epoch) == (optimizer.t, 3)


def test_another_model_is_refused(paths):
    save(paths, make_network(1), 1)
    chainer.serializers.save_npz(str(paths[0]), make_network(2))
    with pytest.raises(StateFileError, match="was not saved with model file"):
        load(paths)


def test_a_model_of_another_network_is_refused(paths):
    save(paths, make_network(1), 1)
    chainer.serializers.save_npz(str(paths[0]), chainer.links.Bias(shape=(3,)))
    with pytest.raises(ModelFileError, match="lacks"):
        load(paths)


def test_a_state_of_another_network_is_refused(paths):
    link = chainer.links.Bias(shape=(3,))
    chainer.serializers.save_npz(str(paths[0]), make_network(1))
    chainer.serializers.save_npz(str(paths[1]), make_optimizer(link))
    with pytest.raises(StateFileError, match="not of this network and optimizer"):
        load(paths)


def test_a_state_of_the_books_fits_any_model(paths):
    network = make_network(4)
    optimizer = make_optimizer(network)
    optimizer.t, optimizer.epoch = 20, 2
    chainer.serializers.save_npz(str(paths[0]), network)
    chainer.serializers.save_npz(str(paths[1]), optimizer)
    loaded = make_network(5)
    assert load_pair(*paths, loaded, make_optimizer(loaded)).place is None
    assert_same_parameters(loaded, network)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 but cut short", b"text", None])
def test_a_file_that_is_no_state_gets_one_sentence(paths, content):
    save(paths, make_network(1), 1)
    if content is None:
        paths[1].unlink()
    else:
        paths[1].write_bytes(content)
    with pytest.raises(StateFileError, match=re.escape(str(paths[1]))) as caught:
        load(paths)
    assert "\n" not in str(caught.value)


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was executed",))


def test_no_pickle_is_executed(paths):
    save(paths, make_network(1), 1)
    paths[1].write_bytes(pickle.dumps(Trap()))
    with pytest.raises(StateFileError):
        load(paths)
    numpy.savez(paths[1].open("wb"), t=numpy.array(Trap(), dtype=object))
    with pytest.raises(StateFileError):
        load(paths)


def test_the_fingerprint_sees_every_parameter():
    network = make_network(1)
    assert (fingerprint(network) == fingerprint(make_network(1))).all()
    for parameter in network.params():
        before = fingerprint(network)
        parameter.array.flat[-1] += 1e-3
        assert (fingerprint(network) != before).any()


def test_a_full_disk_leaves_the_old_pair(paths, monkeypatch):
    save(paths, make_network(1), 1)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError):
        patch.setattr(os, "fsync", full)
        save(paths, make_network(2), 2)
    network = make_network(9)
    load_model(paths[0], network)
    assert_same_parameters(network, make_network(1))
    assert load(paths)[1].t == 1
