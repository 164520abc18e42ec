"""How long the player that searches may think."""

import itertools
import time

import pytest

from pydlshogi.player import clock
from pydlshogi.player.clock import Budget, Delays, Timer, half_of_the_time, make_budget
from pydlshogi.usi.protocol import Clock, Go, parse_go

MARGIN = 0.2


def budget(ply=40, color=0, **clock):
    return make_budget(Go(black=Clock(**clock)), color, ply, MARGIN)


def test_byoyomi_alone_is_used_up_to_the_margin():
    assert budget(remaining=0, byoyomi=1000) == Budget(0.8, 0.8, 0.95)
    assert budget(byoyomi=1000) == Budget(0.8, 0.8, 0.95)


def test_movetime_is_used_up_to_the_margin():
    assert make_budget(Go(movetime=3000), 0, 1, MARGIN) == Budget(2.8, 2.8, 2.95)
    assert make_budget(Go(movetime=40), 0, 1, MARGIN) == Budget(0.02, 0.02, 0)


def test_half_of_a_short_time_is_for_the_search():
    assert budget(byoyomi=200) == Budget(0.1, 0.1, 0.2 - 0.05)
    assert budget(remaining=100, byoyomi=200).planned == pytest.approx(0.1)
    assert make_budget(Go(movetime=200), 0, 1, MARGIN) == Budget(0.1, 0.1, 0.2 - 0.05)


def test_an_increment_without_any_other_time_is_a_clock():
    """ShogiHome takes the increment off the clock: 0 s + 10 s begin with btime 0 binc 10000."""
    assert budget(ply=0, remaining=0, increment=10_000) == Budget(4.8, 4.8, 9.95)


@pytest.mark.parametrize(("base", "increment"), [(1, 3), (2, 5), (4, 10), (1, 60), (0.5, 1)])
def test_the_first_move_fits_into_the_base_if_the_increment_is_longer(base, increment):
    """ShogiHome sends the clock less the increment, here a negative number."""
    remaining, increment = int(1000 * (base - increment)), 1000 * increment
    found = budget(ply=0, remaining=remaining, increment=increment)
    assert 0.1 * base < found.planned <= found.extended < found.last == base - 0.05
    go = parse_go(f"btime {remaining} wtime 0 binc {increment} winc {increment}")[0]
    assert go.black == Clock(remaining, increment, None)
    assert half_of_the_time(go, 0) <= base / 2


def test_a_clock_below_zero_without_an_increment_leaves_no_time():
    assert budget(remaining=-500, increment=100).planned == 0
    assert budget(remaining=-500, byoyomi=1000) == budget(remaining=0, byoyomi=1000)


@pytest.mark.parametrize("increment", [1000, 2000, 5000, 10_000, 30_000])
def test_each_move_of_a_game_with_increments_alone_has_time(increment):
    clock, seconds = increment, []
    for ply in range(0, 40, 2):
        found = budget(ply=ply, remaining=clock - increment, increment=increment)
        seconds.append(found.planned)
        clock += increment - 1000 * found.planned
    assert min(seconds) > 0.07 * increment / 1000
    assert sum(seconds[10:]) > 0.9 * len(seconds[10:]) * increment / 1000


def test_a_large_increment_leaves_half_of_a_short_time_to_the_search():
    assert budget(remaining=300, increment=2000).planned == pytest.approx(0.075)
    assert budget(remaining=300, increment=100).planned == pytest.approx(0.05)


def test_the_reserve_is_at_most_half_of_the_clock():
    found = budget(ply=0, remaining=5000, increment=10_000)
    assert found.planned == pytest.approx(2.5 - MARGIN)


def test_without_a_clock_there_is_no_limit():
    assert make_budget(Go(), 0, 0, MARGIN) is None
    assert make_budget(Go(nodes=5), 0, 0, MARGIN) is None
    # The clock is that of the other side.
    assert make_budget(Go(white=Clock(remaining=1)), 0, 0, MARGIN) is None


def test_the_remaining_time_is_shared_among_the_moves_to_come():
    assert budget(ply=0, remaining=440000).planned == pytest.approx(10)
    assert budget(ply=100, remaining=140000).planned == pytest.approx(10)
    assert budget(ply=100, remaining=140000).extended == pytest.approx(20)


def test_movestogo_divides_the_remaining_time_and_leaves_some_for_the_last_move():
    def planned(moves, ply=100):
        go = Go(black=Clock(remaining=140000), moves_to_go=moves)
        return make_budget(go, 0, ply, MARGIN)

    assert planned(40) == planned(None)
    assert planned(6).planned == pytest.approx(20)
    assert planned(1) == Budget(70, 140 - MARGIN, 140 - 0.05)
    assert planned(0) == planned(-5) == planned(None)  # 0 says nothing: keep time for later
    remaining = 10.0
    for moves in range(40, 0, -1):
        go = Go(black=Clock(remaining=int(1000 * remaining)), moves_to_go=moves)
        remaining -= make_budget(go, 0, 100, MARGIN).extended
    assert remaining >= 0


def test_a_small_increment_is_used():
    assert budget(ply=100, remaining=1450, increment=100).planned == pytest.approx(0.2)


@pytest.mark.parametrize(
    "remaining, increment, byoyomi",
    list(itertools.product([0, 1, 150, 10**3, 10**4, 10**7], [0, 100, 5000], [0, 100, 1000])),
)
def test_no_budget_oversteps_the_clock(remaining, increment, byoyomi):
    for ply in (0, 20, 50, 300):
        found = budget(ply, remaining=remaining, increment=increment, byoyomi=byoyomi)
        assert 0 <= found.planned <= found.extended
        time_left = (remaining + byoyomi or increment) / 1000
        is_small = 0 < increment < 1000 * MARGIN
        margin = MARGIN if is_small else min(MARGIN, time_left / 2)
        assert found.extended <= max(0, time_left - margin) + 1e-12


def test_a_game_with_increment_never_runs_out_of_time():
    remaining, latency = 10.0, 0.15
    for ply in range(0, 2000, 2):
        found = budget(ply, remaining=int(1000 * remaining), increment=100)
        remaining -= found.extended + (latency if found.extended else 0.02)
        assert remaining > 0
        remaining += 0.1


@pytest.mark.parametrize("increment, reserve", [(10, 5), (1, 0.5), (60, 5)])
def test_with_an_increment_some_time_stays_on_the_clock(increment, reserve):
    remaining = 300.0
    for ply in range(0, 400, 2):  # every choice is unclear
        found = budget(ply, remaining=int(1000 * remaining), increment=1000 * increment)
        remaining -= found.extended
        assert remaining >= reserve + MARGIN - 0.01
        remaining += increment
    assert found.extended == pytest.approx(increment, rel=0.1)  # what comes in is used


def test_a_move_is_late_only_when_the_clock_has_run_down():
    timer = Timer(Go(black=Clock(byoyomi=200)), 0, 0, MARGIN)
    time.sleep(0.105)
    assert timer.is_over() and not timer.is_late()
    time.sleep(0.05)
    assert timer.is_late()


def test_a_stopped_search_waits_a_moment_for_a_move():
    go = Go(black=Clock(byoyomi=10**6))
    timer = Timer(go, 0, 0, MARGIN)
    go.stop.set()
    assert timer.is_over() and not timer.is_late()
    time.sleep(0.06)
    assert timer.is_late()


def test_ponder_has_no_limit_until_ponderhit(fake):
    go = Go(ponder=True, black=Clock(byoyomi=1000))
    timer = Timer(go, 0, 0, MARGIN)
    fake.compute(0.05)
    assert timer.budget() is None
    assert not timer.is_over()
    go.ponderhit.set()
    go.ponderhit.time = fake.now
    assert timer.budget() == Budget(0.8, 0.8, 0.95)
    assert timer.spent() < timer.elapsed() - 0.04
    assert not timer.is_over()


def test_the_clock_runs_from_when_the_command_was_read():
    early = time.perf_counter() - 0.5
    go = Go(black=Clock(byoyomi=1000), time=early)
    assert Timer(go, 0, 0, MARGIN).spent() == pytest.approx(0.5, abs=0.05)
    go = Go(ponder=True, black=Clock(byoyomi=1000))
    timer = Timer(go, 0, 0, MARGIN)
    go.ponderhit.set()
    time.sleep(0.1)  # the search looks later
    assert timer.budget() is not None
    assert timer.spent() >= 0.1


def test_ponderhit_may_bring_a_clock():
    go = Go(ponder=True)
    timer = Timer(go, 0, 0, MARGIN)
    go.ponderhit.set("btime 0 wtime 0 byoyomi 3000")
    assert timer.budget() == Budget(2.8, 2.8, 2.95)


def test_ponderhit_without_any_limit_wants_the_move_at_once():
    go = Go(ponder=True)
    timer = Timer(go, 0, 0, MARGIN)
    go.ponderhit.set()
    assert timer.is_over()
    with_nodes = Go(ponder=True, nodes=100)
    timer = Timer(with_nodes, 0, 0, MARGIN)
    with_nodes.ponderhit.set()
    assert not timer.is_over()


def test_stop_ends_everything():
    for go in (Go(infinite=True), Go(ponder=True), Go(), Go(black=Clock(byoyomi=10**6))):
        timer = Timer(go, 0, 0, MARGIN)
        assert not timer.is_over()
        go.stop.set()
        assert timer.is_over()


def test_the_time_ends_at_the_budget(fake):
    timer = Timer(Go(movetime=60), 0, 0, MARGIN)
    assert not timer.is_over()
    fake.compute(0.04)
    assert timer.is_over()


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("", None),
        ("nodes 5 depth 1", None),
        ("movetime 3000", 1.5),
        ("movetime 3000 btime 0 wtime 0", 1.5),
        ("byoyomi 1000", 0.5),
        ("btime 0 wtime 0 byoyomi 1000", 0.5),
        ("btime 60000 wtime 9 byoyomi 1000", 1.5),
        ("btime 60000 binc 1000 wtime 9", 1.5),
        # Some GUIs add the increment after the move, so it cannot be spent on it.
        ("btime 600 binc 10000 wtime 9", 0.3),
        ("btime 0 binc 10000 wtime 9", 5.0),
        ("btime -5 wtime 9", 0),
        # The GUI gives a limit, but not that of the side to move.
        ("wtime 9", 0),
        ("winc 1000", 0),
        ("movestogo 1 btime 60000 wtime 9", 15),
        ("movestogo 40 btime 60000 wtime 9", 1),
        # A number that says nothing must not spend the whole clock on one move.
        ("movestogo -5 btime 60000 wtime 9", 1),
        ("movestogo 0 btime 60000 wtime 9", 1),
        ("movestogo btime 60000 wtime 9", 1),
        ("btime x wtime y", 0),
        ("movetime", 0),
        ("infinite btime 0 wtime 0 byoyomi 1000", None),
        ("ponder btime 0 wtime 0 byoyomi 1000", None),
    ],
)
def test_half_of_the_time_of_the_side_to_move_is_for_thinking(words, seconds):
    assert half_of_the_time(parse_go(words)[0], 0) == pytest.approx(seconds)
    for side in ("time", "inc"):
        words = words.replace(f"b{side}", "x").replace(f"w{side}", f"b{side}")
        words = words.replace("x", f"w{side}")
    assert half_of_the_time(parse_go(words)[0], 1) == pytest.approx(seconds)


class FakeTime:
    """A clock that only the test moves."""

    def __init__(self):
        self.now = self.used = 100.0

    def perf_counter(self):
        return self.now

    def thread_time(self):
        return self.used

    def compute(self, seconds):
        self.now += seconds
        self.used += seconds

    def wait(self, seconds):
        self.now += seconds


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(clock, "time", FakeTime())
    return clock.time


def think(fake, delays, delay=0.0, step=0.01, byoyomi=1000):
    """Searches until the time is over; in each step, other programs run for ``delay`` seconds.

    Returns the seconds that the move took.
    """
    begin = fake.now
    timer = Timer(Go(black=Clock(byoyomi=byoyomi), time=begin), 0, 40, 0.3, delays)
    while not timer.is_over():
        fake.compute(step)
        fake.wait(delay)
    timer.end()
    return fake.now - begin


def test_the_margin_grows_with_the_delays_seen(fake):
    delays = Delays()
    usual = think(fake, Delays())
    used = [think(fake, delays, delay=0.15) for _ in range(30)]
    assert max(used) < usual
    assert min(used) >= 0.35  # half of what the usual margin leaves is for the search


def test_a_delay_that_ends_leaves_a_larger_margin_for_some_moves(fake):
    delays = Delays()
    usual = think(fake, delays)
    timer = Timer(Go(black=Clock(byoyomi=1000), time=fake.now), 0, 40, 0.3, delays)
    assert timer.budget().extended == pytest.approx(0.7)
    fake.wait(0.17)
    assert not timer.is_over()
    assert timer.budget().extended == pytest.approx(0.7 - 2 * 0.07)
    timer.end()
    assert [think(fake, delays) < usual for _ in range(18)] == [True] * 16 + [False] * 2


def test_a_short_delay_and_a_slow_search_leave_the_margin_alone(fake):
    for delay, step in [(0.0, 0.01), (0.095, 0.001), (0.0, 0.2)]:
        delays = Delays()
        used = [think(fake, delays, delay, step) for _ in range(10)]
        assert used == pytest.approx([think(fake, Delays(), delay, step)] * 10)
        assert delays.reserve() == 0


def test_what_was_learned_is_forgotten_after_twenty_quiet_moves(fake):
    delays = Delays()
    usual = think(fake, Delays())
    for _ in range(50):
        think(fake, delays, delay=0.4)
    assert think(fake, delays) < usual - 0.1
    for _ in range(20):
        think(fake, delays)
    assert think(fake, delays) == pytest.approx(usual, abs=0.015)


def test_a_delay_between_the_end_of_the_time_and_the_move_counts(fake):
    delays = Delays()
    timer = Timer(Go(black=Clock(byoyomi=1000), time=fake.now), 0, 40, 0.3, delays)
    fake.compute(0.71)
    assert timer.is_over()
    for _ in range(3):  # three waits of the same delay
        fake.wait(0.1)
        assert timer.is_over()
    timer.end()
    assert delays.reserve() == pytest.approx(2 * (0.3 - 0.1))


def test_a_suspended_computer_does_not_take_the_time_of_the_next_moves(fake):
    delays = Delays()
    think(fake, delays, delay=3600)
    assert think(fake, delays, byoyomi=60_000) > 57


def test_loading_the_network_is_no_delay(fake):
    delays = Delays()
    timer = Timer(Go(black=Clock(byoyomi=1000), time=fake.now), 0, 40, 0.3, delays)
    fake.wait(5)
    timer.wait_for_first_answer()
    timer.end()
    assert delays.reserve() == 0


def test_with_increments_the_clock_never_runs_out_under_load(fake):
    """The referee loses time, too, and grants 0.1 s."""
    delays, remaining = Delays(), 3.0
    for move in range(300):
        load = 0.2 if move // 50 % 2 else 0.0
        go = Go(black=Clock(round(1000 * remaining), 1000), time=fake.now)
        begin = fake.now
        timer = Timer(go, 0, 2 * move, 0.3, delays)
        while not timer.is_over():
            fake.compute(0.01)
            fake.wait(load)
        fake.wait(2 * load)
        timer.end()
        remaining -= fake.now - begin
        assert remaining > 0
        remaining += 1
