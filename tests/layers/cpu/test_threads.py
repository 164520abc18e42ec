import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl

from pydlshogi import processors
from pydlshogi.layers.cpu import threads, winograd


@pytest.fixture(autouse=True)
def machines_threads():
    # BLAS gets two threads on any machine; a setting that is not restored is then visible.
    with threadpoolctl.threadpool_limits(2):
        yield
    threads.set_threads(None)


def blas_settings():
    return [library["num_threads"] for library in threadpoolctl.threadpool_info()]


def test_avx2_is_what_linux_says():
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        pytest.skip("not Linux")
    if "flags" not in text:
        pytest.skip("not an x86 processor")
    assert processors.has_avx2() == ("avx2" in text.split())


@pytest.fixture
def quotas(monkeypatch):
    """Replaces the files of the control groups; at first there are none."""

    def give(*files):
        processors._quota.cache_clear()
        monkeypatch.setattr(processors, "_QUOTAS", files)

    give()
    yield give
    processors._quota.cache_clear()


def test_number_of_threads(monkeypatch, quotas):
    monkeypatch.delenv(processors.THREADS_VARIABLE, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5}, raising=False)
    assert threads.get_threads() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert threads.get_threads() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert threads.get_threads() == 1
    monkeypatch.setenv(processors.THREADS_VARIABLE, "4")
    assert threads.get_threads() == 4
    threads.set_threads(2)
    assert threads.get_threads() == 2


@pytest.mark.parametrize(
    "contents, number",
    [
        (["max 100000"], 8),
        (["350000 100000"], 3),
        (["20000 100000"], 1),
        (["1600000 100000"], 8),
        (["-1", "100000"], 8),
        (["200000", "100000"], 2),
        (["200000"], 8),
        (["nonsense"], 8),
    ],
)
def test_a_containers_quota_is_kept(monkeypatch, quotas, tmp_path, contents, number):
    monkeypatch.delenv(processors.THREADS_VARIABLE, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    files = [str(tmp_path / str(place)) for place in range(len(contents))]
    for file, content in zip(files, contents):
        (tmp_path / file).write_text(content + "\n")
    quotas([str(tmp_path / "missing")], files)
    assert threads.get_threads() == number


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "513", "1000000000"])
def test_a_wrong_environment_variable_is_named(monkeypatch, text):
    monkeypatch.setenv(processors.THREADS_VARIABLE, text)
    with pytest.raises(ValueError, match=f"PYDLSHOGI_THREADS is '{text}'"):
        threads.get_threads()


def test_a_wrong_number_is_refused():
    with pytest.raises(ValueError, match="number of threads 0"):
        threads.set_threads(0)


@pytest.mark.parametrize("n", [1, 2, 7, 100])
@pytest.mark.parametrize("number", [1, 2, 5])
def test_every_board_is_in_one_chunk(n, number):
    threads.set_threads(number)
    plan = threads.plan(n, least=2, most=3)
    assert 1 <= len(plan) <= number
    chunks = [chunk for chunks in plan for chunk in chunks]
    assert [board for start, stop in chunks for board in range(start, stop)] == list(range(n))
    assert all(0 < stop - start <= 3 for start, stop in chunks)


@pytest.mark.parametrize("number", [1, 2, 4])
def test_a_step_begins_when_the_step_before_has_ended(number):
    done = []

    def step(name):
        def take(thread):
            time.sleep(0.01 * thread)
            done.append((name, thread))

        return take

    threads.in_threads(number, step("a"), step("b"), step("c"))
    assert [name for name, _ in done] == ["a"] * number + ["b"] * number + ["c"] * number
    for name in "abc":
        assert {thread for step, thread in done if step == name} == set(range(number))


@pytest.mark.parametrize("number", [2, 3, 4, 7])
def test_no_thread_is_ever_a_step_ahead(number):
    counts = [0] * number
    wrong = []

    def step(thread):
        counts[thread] += 1
        if max(counts) - min(counts) > 1:
            wrong.append(list(counts))

    threads.in_threads(number, *[step] * 500)
    assert counts == [500] * number
    assert not wrong


def test_blas_has_one_thread_meanwhile():
    before = blas_settings()
    inside = []
    threads.in_threads(2, lambda thread: inside.append(blas_settings()))
    assert inside == [[1] * len(before)] * 2
    assert blas_settings() == before


def test_blas_can_be_limited_but_gets_no_more_than_it_has():
    before = blas_settings()
    threads.set_threads(max(before) + 1)
    threads.limit_blas()
    assert blas_settings() == before
    threads.set_threads(1)
    threads.limit_blas()
    assert blas_settings() == [1] * len(before)


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), KeyboardInterrupt()])
def test_threads_that_began_do_not_wait_for_those_that_cannot(monkeypatch, error):
    class Refusing:
        def __init__(self):
            self.begun = []
            self._pool = ThreadPoolExecutor(1)

        def submit(self, function, number):
            if self.begun:
                raise error
            self.begun.append(self._pool.submit(function, number))
            return self.begun[0]

    executor = Refusing()
    monkeypatch.setattr(threads, "_executor", lambda number: executor)
    before = blas_settings()
    with pytest.raises(type(error)):
        threads.in_threads(3, lambda thread: None, lambda thread: None)
    assert executor.begun[0].done()
    assert blas_settings() == before


@pytest.mark.skipif(os.name == "nt", reason="a signal does not interrupt a lock there")
def test_ctrl_c_is_raised_after_all_threads_have_stopped():
    done = []

    def step(thread):
        if thread:
            time.sleep(0.1)  # the first thread has ended its part, and waits
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)
            done.append(thread)

    with pytest.raises(KeyboardInterrupt):
        threads.in_threads(2, step)
    assert done == [1]


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_in_a_thread_reaches_the_caller(failing):
    before = blas_settings()
    later = []

    def step(thread):
        if thread == failing:
            raise ArithmeticError("no")

    with pytest.raises(ArithmeticError, match="no"):
        threads.in_threads(3, step, later.append)
    assert later == []
    assert blas_settings() == before
    threads.in_threads(3, later.append)
    assert sorted(later) == [0, 1, 2]


@pytest.mark.parametrize("number", [2, 3, 6])
@pytest.mark.parametrize("failing_step", range(4))
def test_no_thread_goes_on_after_an_error_in_any_step(number, failing_step):
    begun = []

    def step(index):
        def take(thread):
            begun.append(index)
            if (index, thread) == (failing_step, number - 1):
                raise ArithmeticError("no")

        return take

    with pytest.raises(ArithmeticError, match="no"):
        threads.in_threads(number, *map(step, range(6)))
    assert max(begun) == failing_step


def test_blas_gets_its_threads_back_when_several_threads_compute():
    before = blas_settings()
    computing = [
        threading.Thread(target=lambda: [threads.in_threads(2, lambda n: None) for _ in range(100)])
        for _ in range(4)
    ]
    for thread in computing:
        thread.start()
    for thread in computing:
        thread.join()
    assert blas_settings() == before


def test_any_thread_can_limit_blas():
    """threadpoolctl ignores all threads but the first, without an error."""
    with threads.blas_threads(1):
        pass
    found = []

    def limit():
        with threads.blas_threads(1):
            found.append(set(blas_settings()))
        found.append(set(blas_settings()))

    for _ in range(2):
        thread = threading.Thread(target=limit)
        thread.start()
        thread.join()
    assert found == [{1}, {2}] * 2


def test_a_new_number_of_threads_waits_for_a_computation():
    """Otherwise the computation would restore the number that it found."""
    before = blas_settings()
    begun, ended = threading.Event(), threading.Event()

    def compute():
        with threads.blas_threads(1):
            begun.set()
            ended.wait(timeout=60)

    computation = threading.Thread(target=compute)
    change = threading.Thread(target=threads.compute_with, args=(2,))
    try:
        for thread in (computation, change):
            thread.start()
            begun.wait(timeout=60)
        change.join(timeout=0.2)
        assert change.is_alive() and set(blas_settings()) == {1}
        ended.set()
        for thread in (computation, change):
            thread.join(timeout=60)
        assert threads.get_threads() == 2
        assert set(blas_settings()) == {2}
        threads.compute_with(1)
        assert set(blas_settings()) == {1}
    finally:
        ended.set()
        for library, number in zip(threads._blas_libraries(), before):
            library.set_num_threads(number)


def test_blas_is_never_given_more_threads_than_it_has():
    with threadpoolctl.threadpool_limits(1):
        with threads.blas_threads(3):
            assert set(blas_settings()) == {1}
        assert set(blas_settings()) == {1}


def test_rooms_are_the_threads_own_and_used_again():
    room = threads.Workspace()
    first = room("a", (3, 4))
    assert first.shape == (3, 4)
    assert first.dtype == np.float32
    assert np.shares_memory(first, room("a", (2, 2)))
    assert not np.shares_memory(first, room("b", (3, 4)))
    others = []
    thread = threading.Thread(target=lambda: others.append(room("a", (3, 4))))
    thread.start()
    thread.join()
    assert not np.shares_memory(first, others[0])


def _forward_in_child(queue, x, W):
    queue.put(winograd.forward(x, W, None, False))


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="the system cannot fork"
)
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_child_computes_too():
    threads.set_threads(2)
    random = np.random.RandomState(0)
    x = random.standard_normal((9, 3, 9, 9)).astype(np.float32)
    W = random.standard_normal((4, 3, 3, 3)).astype(np.float32)
    expected = winograd.forward(x, W, None, False)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_forward_in_child, args=(queue, x, W))
    child.start()
    try:
        found = queue.get(timeout=60)
    finally:
        child.join(timeout=60)
        child.kill()
    np.testing.assert_array_equal(found, expected)
