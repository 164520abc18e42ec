"""What an earlier process has found out about a network shortens the next start."""

import os

import pytest
from network_helpers import assert_equal_outputs, make_trained, narrow, some_planes

from pydlshogi.device import select_device
from pydlshogi.inference import backend, compiler
from pydlshogi.inference.backend import (
    AUTO,
    OPENVINO_INT8,
    OWN,
    VARIABLE,
    make_forward,
    recall,
    remember,
)
from pydlshogi.layers.cpu.threads import get_threads, set_threads
from pydlshogi.model_files.agreement import outputs_in_play
from pydlshogi.model_files.fold import fold_for_play

CPU = select_device(-1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def folded(seed=1):
    return fold_for_play(make_trained("policy_value", seed, **narrow("policy_value", 16)))


def test_what_is_remembered_belongs_to_a_network_a_subject_and_a_number_of_threads(folder):
    remember(folded(), "subject", b"content")
    assert recall(folded(), "subject") == b"content"
    assert recall(folded(), "other") is None
    assert recall(folded(seed=2), "subject") is None
    threads = get_threads()
    set_threads(threads + 1)
    try:
        assert recall(folded(), "subject") is None
    finally:
        set_threads(threads)


class Own(type(folded())):
    """A network of a user, whose code may change while the weights stay."""


def test_nothing_is_remembered_of_a_class_of_the_user(folder):
    remember(Own(**narrow("policy_value", 16)), "subject", b"content")
    assert recall(Own(**narrow("policy_value", 16)), "subject") is None
    assert not folder.exists()


def test_a_class_of_the_user_with_a_known_name_gets_nothing_of_the_known_one(folder):
    network = folded()
    remember(network, "subject", b"content")
    own = type(type(network).__name__, (type(network),), {"__module__": "pydlshogi_own_1_network"})
    network.__class__ = own
    assert recall(network, "subject") is None


def test_without_a_home_folder_nothing_is_remembered(monkeypatch):
    def missing():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("pathlib.Path.home", missing)
    remember(folded(), "subject", b"content")
    assert recall(folded(), "subject") is None


@pytest.mark.parametrize("length", [0, 10, 38])
def test_a_damaged_file_is_passed_over(folder, length):
    remember(folded(), "subject", b"content")
    (path,) = folder.iterdir()
    path.write_bytes(path.read_bytes()[:length])
    assert recall(folded(), "subject") is None


def test_without_a_folder_nothing_is_remembered(folder):
    folder.write_text("a file in its place")
    remember(folded(), "subject", b"content")
    assert recall(folded(), "subject") is None


def test_only_the_newest_files_are_kept(folder):
    for number in range(30):
        remember(folded(), str(number), b"")
        for place, path in enumerate(sorted(folder.iterdir(), key=lambda p: p.stat().st_mtime)):
            os.utime(path, (place, place))
    assert len(list(folder.iterdir())) < 30
    assert recall(folded(), "29") == b""
    assert recall(folded(), "0") is None


@pytest.mark.parametrize("chosen", [OWN, OPENVINO_INT8])
def test_auto_measures_a_network_once(folder, monkeypatch, chosen):
    pytest.importorskip("openvino")
    measured = []

    def measure(network, candidates):
        measured.append(network)
        return {name: 1.0 if name == chosen else 100.0 for name in candidates}

    monkeypatch.setattr(backend, "_measure", measure)
    names, forwards = zip(*(make_forward(AUTO, folded(), CPU) for _ in range(2)))
    assert names == (chosen, chosen)
    assert len(measured) == 1
    first, second = (forward(some_planes(5)) for forward in forwards)
    assert_equal_outputs(second, first)


def test_a_compiled_network_that_openvino_refuses_is_compiled_again(folder):
    pytest.importorskip("openvino")
    name, first = make_forward(OPENVINO_INT8, folded(), CPU)
    remember(folded(), OPENVINO_INT8, b"not a network")
    _, second = make_forward(name, folded(), CPU)
    assert_equal_outputs(second(some_planes(3)), first(some_planes(3)))


def test_our_own_program_is_compared_with_the_network_once(folder, monkeypatch):
    calls = []
    monkeypatch.setattr(
        compiler, "outputs_in_play", lambda *a: calls.append(a) or outputs_in_play(*a)
    )
    for _ in range(2):
        assert make_forward(OWN, folded(), CPU)[1] is not None
    assert len(calls) == 1
    make_forward(OWN, folded(seed=2), CPU)
    assert len(calls) == 2
