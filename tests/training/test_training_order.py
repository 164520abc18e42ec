"""The order of an epoch: a permutation, as random as numpy's."""

import numpy
import pytest

from pydlshogi.training import batches, order
from pydlshogi.training.batches import EpochIterator, draw
from pydlshogi.training.order import COMPUTED, SHUFFLED, ComputedOrder, make_order, random_of


def computed(size, seed=0):
    return ComputedOrder(size, random_of(seed))


@pytest.mark.parametrize("size", [*range(1, 40), 63, 64, 65, 1000, 4097, 70_000])
def test_a_computed_order_holds_every_number_once(size):
    numbers = computed(size)[:]
    assert numbers.dtype == numpy.int64
    assert numpy.array_equal(numpy.sort(numbers), numpy.arange(size))


def test_parts_of_an_order_are_the_order():
    whole = computed(1000)[:]
    parts = [computed(1000)[start : start + 64] for start in range(0, 1000, 64)]
    assert numpy.array_equal(numpy.concatenate(parts), whole)
    assert len(computed(1000)) == 1000


def test_a_thousand_million_numbers_need_no_table():
    numbers = computed(10**9)[5 * 10**8 : 5 * 10**8 + 10_000]
    assert len(numpy.unique(numbers)) == 10_000
    assert (numbers.min(), numbers.max()) > (0, 0)
    assert numbers.max() < 10**9


@pytest.mark.long
@pytest.mark.parametrize("size", [3, 5])
def test_small_orders_are_all_equally_frequent(size):
    """Chi-square of the counts of all permutations, at 0.1 %."""
    count = 1_500
    found = numpy.array([computed(size, seed)[:] for seed in range(count)])
    _, counts = numpy.unique(found, axis=0, return_counts=True)
    number = int(numpy.prod(numpy.arange(1, size + 1)))
    expected = count / number
    statistic = ((counts - expected) ** 2 / expected).sum() + (number - len(counts)) * expected
    assert statistic < _chi_square(number - 1)


def _chi_square(freedom):
    """The value that a chi-square exceeds once in 1,000 times (Wilson and Hilferty 1931)."""
    step = 2 / (9 * freedom)
    return freedom * (1 - step + 3.09 * step**0.5) ** 3


def _statistics(numbers, size):
    """Standardized statistics of a random order: each is about normal with variance 1."""
    places = numpy.arange(len(numbers))
    x, y = numbers / size - 0.5, places / len(numbers) - 0.5
    n = len(numbers)
    yield "place and number", 12 * (x * y).sum() / n**0.5
    for lag in (1, 2, 3, 8, 64):
        yield f"neighbours {lag}", 12 * (x[lag:] * x[:-lag]).sum() / (n - lag) ** 0.5
    cells, _, _ = numpy.histogram2d(x, y, 16)
    chi = ((cells - n / 256) ** 2 / (n / 256)).sum()
    yield "cells", (chi - 225) / (2 * 225) ** 0.5
    pairs, _, _ = numpy.histogram2d(x[:-1], x[1:], 16)
    chi = ((pairs - n / 256) ** 2 / (n / 256)).sum()
    yield "pairs", (chi - 225) / (2 * 225) ** 0.5
    even = (numbers & 1).astype(float) - 0.5
    yield "runs of odd and even", 4 * (even[1:] * even[:-1]).sum() / n**0.5
    yield "fixed bits", 4 * (even * ((places & 1) - 0.5)).sum() / n**0.5


@pytest.mark.parametrize("kind", [SHUFFLED, COMPUTED])
def test_a_computed_order_is_as_random_as_numpys(kind):
    """Both pass the same tests: over 40 seeds no mean and no variance is unusual."""
    size = 20_000
    found: dict[str, list[float]] = {}
    for seed in range(40):
        for name, value in _statistics(make_order(size, random_of(7, seed), kind)[:], size):
            found.setdefault(name, []).append(value)
    for name, values in found.items():
        assert abs(numpy.mean(values)) < 0.7, name  # 4.4 standard deviations
        assert 0.3 < numpy.var(values) < 2.2, name


def test_orders_of_different_seeds_are_unrelated():
    size = 50_000
    orders = [computed(size, seed)[:] for seed in range(6)]
    for number, one in enumerate(orders):
        for other in orders[:number]:
            assert (one == other).sum() < 10  # 1 expected
            assert abs(12 * ((one / size - 0.5) * (other / size - 0.5)).sum()) < 4.5 * size**0.5


def test_a_set_that_fits_keeps_the_order_of_earlier_versions():
    iterator = EpochIterator(20, 20, 5)
    assert iterator.kind == SHUFFLED
    expected = numpy.random.RandomState([5, 0, 0]).permutation(20)
    assert numpy.array_equal(next(iterator), expected)
    expected = numpy.random.RandomState([5, 1, 3]).permutation(20)[:4]
    assert numpy.array_equal(draw(5, 3, 20, 4), expected)


def test_large_sets_have_a_computed_order_that_resumes_exactly(monkeypatch):
    monkeypatch.setattr(order, "LARGE", 50)
    iterator = EpochIterator(100, 7, 5)
    assert iterator.kind == COMPUTED
    numbers = [next(iterator) for _ in range(40)]
    assert sorted(numpy.concatenate(numbers[:15])) == list(range(100))
    assert not numpy.array_equal(numbers[0], numbers[15])
    monkeypatch.setattr(order, "LARGE", 1000)
    other = EpochIterator(100, 7, 9)
    other.go_to(5, 1, 35, COMPUTED)
    assert numpy.array_equal(next(other), numbers[20])
    assert len(set(batches.draw(1, 1, 60, 12))) == 12
