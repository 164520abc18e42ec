"""The levels: the random choice among the policy's moves, and the table."""

import re
from pathlib import Path

import numpy
import pytest

from pydlshogi.player.engine_options import FULL_LEVEL, POLICY_LEVEL, mcts_options
from pydlshogi.player.levels import LEVELS, Level, shares
from pydlshogi.player.strategy import softmax
from pydlshogi.uct.settings import Settings


def drawn(level, probabilities, draws=4000):
    """How often each move is picked."""
    rng = numpy.random.default_rng(1)
    picked = [level.draw(numpy.array(probabilities), rng) for _ in range(draws)]
    return numpy.bincount(picked, minlength=len(probabilities)) / draws


def test_a_move_is_picked_as_often_as_its_probability_says_at_temperature_1():
    assert drawn(Level(1.0), [0.2, 0.5, 0.3]) == pytest.approx([0.2, 0.5, 0.3], abs=0.03)


def test_a_high_temperature_makes_the_moves_nearly_equal_and_a_low_one_picks_the_best():
    assert drawn(Level(1000.0), [0.2, 0.5, 0.3]) == pytest.approx([1 / 3] * 3, abs=0.03)
    assert drawn(Level(0.05), [0.2, 0.5, 0.3]) == pytest.approx([0, 1, 0], abs=0.01)


def test_the_temperature_divides_the_logits():
    logits = numpy.array([0.3, 1.2, -0.5])
    found = drawn(Level(2.0), softmax(logits))
    assert found == pytest.approx(softmax(logits, 2.0), abs=0.03)


def test_moves_below_the_bound_are_not_picked():
    found = drawn(Level(1000.0, bound=0.2), [0.1, 0.5, 0.21, 0.19])
    assert found == pytest.approx([0, 0.5, 0.5, 0], abs=0.03)


def test_the_best_move_is_picked_if_the_bound_excludes_all():
    assert drawn(Level(1000.0, bound=0.6), [0.2, 0.5, 0.3])[1] == 1


def test_a_nearly_forced_move_is_picked_even_at_a_high_temperature():
    assert drawn(Level(1000.0), [0.05, 0.92, 0.03])[1] == 1


def test_of_two_moves_that_are_all_but_forced_together_no_third_one_is_picked():
    found = drawn(Level(1000.0), [0.08, 0.5, 0.42])
    assert found == pytest.approx([0, 0.5, 0.5], abs=0.03)


def test_the_probabilities_need_not_sum_to_1_and_may_be_0():
    assert drawn(Level(1000.0), [0.0, 0.02, 0.02]) == pytest.approx([0, 0.5, 0.5], abs=0.03)


def test_the_visits_of_a_search_count_as_much_as_the_policy():
    assert shares([0.2, 0.7, 0.1], [0, 0, 0]) == pytest.approx([0.2, 0.7, 0.1])
    assert shares([0.2, 0.7, 0.1], [3, 1, 0]) == pytest.approx([0.95, 0.95, 0.1])


def test_there_is_a_level_for_each_value_of_the_option_but_the_last():
    option = next(line for line in mcts_options().declarations() if " Level " in line)
    assert option == f"option name Level type spin default {FULL_LEVEL} min 1 max {FULL_LEVEL}"
    assert [*LEVELS, FULL_LEVEL] == list(range(1, 21))
    without_search = [number for number, level in LEVELS.items() if level.visits == 1]
    assert without_search == list(range(1, POLICY_LEVEL + 1))


def test_levels_up_to_10_do_not_search_and_the_others_search_more_and_more():
    visits = [level.visits for level in LEVELS.values()]
    assert visits[:10] == [1] * 10
    assert visits[9:] == sorted(visits[9:])
    assert visits[10] > 1
    temperatures = [level.temperature for level in LEVELS.values()]
    assert all(low > high for low, high in zip(temperatures[:9], temperatures[1:10]))


def test_from_level_8_on_a_mate_in_one_is_seen():
    assert [level.mate_plies > 0 for level in LEVELS.values()] == [False] * 7 + [True] * 12


def test_a_level_does_not_lengthen_the_mate_search_of_the_options():
    assert Level(mate_plies=5).settings(Settings(mate_plies=3)).mate_plies == 3


@pytest.mark.parametrize("page", ["playing.md", "playing.ja.md"])
def test_the_table_of_the_docs_has_the_numbers_of_the_levels(page):
    text = (Path(__file__).resolve().parents[2] / "docs" / page).read_text(encoding="utf-8")
    rows = [row.split(" | ") for row in re.findall(r"^\| (\d+ \| .*) \|$", text, re.M)]
    table = {
        int(level): Level(
            float(temperature or 0), float(bound or 0), int(visits or 1), int(mate or 0)
        )
        for level, visits, temperature, bound, mate, *_ in rows
        if int(level) < FULL_LEVEL
    }
    assert table == LEVELS
