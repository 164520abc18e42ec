"""Evaluations run one at a time, in the search's own thread where that is quick enough."""

import concurrent.futures
import gc
import subprocess
import sys
import threading
import time

import numpy
import pytest

from pydlshogi.uct.evaluation import Evaluations

ONE = numpy.zeros((1, 104), numpy.float32)
#: So many positions that their evaluation is expected to take long.
MANY = numpy.zeros((10**9, 0), numpy.float32)


def never():
    return False


def answer(planes):
    return planes, None


def with_known_time(evaluate):
    """Makes evaluations that have measured a short time, also on a busy machine."""
    evaluations = Evaluations(evaluate)
    while evaluations.begin(ONE).future:
        evaluations.wait(evaluations.begin(ONE), never)
    return evaluations


def test_only_a_short_evaluation_runs_in_the_thread_of_the_search():
    threads = []

    def evaluate(planes):
        threads.append(threading.get_ident())
        return answer(planes)

    evaluations = with_known_time(evaluate)
    assert threads[0] != threading.get_ident()  # the first one: its time is not known yet
    evaluations.wait(evaluations.begin(ONE), never)
    assert threads[-1] == threading.get_ident()
    evaluations.wait(evaluations.begin(MANY), never)
    assert threads[-1] != threading.get_ident()


def test_each_search_measures_the_time_anew():
    evaluations = with_known_time(answer)
    assert evaluations.begin(ONE).future is None
    evaluations.begin_search(in_background=False)
    assert evaluations.begin(ONE).future is not None


def test_in_the_background_every_evaluation_begins_at_once():
    begun = threading.Event()
    evaluations = with_known_time(lambda planes: begun.set() or answer(planes))
    begun.clear()
    evaluations.begin_search(in_background=True)
    evaluation = evaluations.begin(ONE)
    assert begun.wait(60)
    assert evaluations.wait(evaluation, never)[0] is ONE


def test_a_short_evaluation_waits_for_a_long_one_that_was_given_up():
    release, running, most = threading.Event(), [], []

    def evaluate(planes):
        running.append(planes)
        most.append(len(running))
        if planes is MANY:
            release.wait(60)
        running.pop()
        return answer(planes)

    evaluations = with_known_time(evaluate)
    assert evaluations.wait(evaluations.begin(MANY), lambda: bool(running)) is None
    short = evaluations.begin(ONE)
    release.set()
    assert evaluations.wait(short, never)[0] is ONE
    assert max(most) == 1


@pytest.mark.parametrize("planes", [ONE, MANY])
def test_an_error_comes_out_of_wait_however_often_it_is_called(planes):
    works = [True]

    def evaluate(planes):
        if not works:
            raise RuntimeError("the network is gone")
        return answer(planes)

    evaluations = with_known_time(evaluate)
    works.clear()
    evaluation = evaluations.begin(planes)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="gone"):
            evaluations.wait(evaluation, never)


def wait_for_end(thread):
    deadline = time.monotonic() + 60
    while thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not thread.is_alive()


class Owner:
    """As a player, it gives its own method to the evaluations that it owns."""

    def __init__(self):
        self.evaluations = Evaluations(self.evaluate)
        self.evaluations.begin_search(in_background=True)
        self.evaluations.wait(self.evaluations.begin(ONE), never)

    def evaluate(self, planes):
        self.thread = threading.current_thread()
        return answer(planes)


def test_a_time_out_of_the_network_is_an_error_and_not_a_wait():
    def evaluate(planes):
        raise concurrent.futures.TimeoutError("the network")

    evaluations = Evaluations(evaluate)
    with pytest.raises(concurrent.futures.TimeoutError, match="the network"):
        evaluations.wait(evaluations.begin(MANY), never)


def test_the_thread_ends_when_it_is_closed_and_begins_again_when_needed():
    owner = Owner()
    first = owner.thread
    owner.evaluations.close()
    owner.evaluations.close()
    wait_for_end(first)
    owner.evaluations.wait(owner.evaluations.begin(ONE), never)
    assert owner.thread.is_alive()
    assert owner.thread is not first
    owner.evaluations.close()
    wait_for_end(owner.thread)


def test_the_thread_ends_with_its_owner():
    owner = Owner()
    thread = owner.thread
    time.sleep(0.05)
    assert thread.is_alive()
    del owner
    gc.collect()
    wait_for_end(thread)


def test_the_process_ends_after_the_evaluation_that_has_begun():
    script = """
import time
import numpy
from pydlshogi.uct.evaluation import Evaluations

def evaluate(planes):
    time.sleep(0.5)
    print("evaluated", flush=True)
    return planes, None

Evaluations.alive = Evaluations(evaluate)
Evaluations.alive.begin_search(in_background=True)
Evaluations.alive.begin(numpy.zeros((1, 104), numpy.float32))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "evaluated\n", "")
