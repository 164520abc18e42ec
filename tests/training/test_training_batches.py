"""Which positions make a batch, and what a batch is."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training_helpers import make_positions

from pydlshogi.compat import chainer
from pydlshogi.features import make_features
from pydlshogi.training.batches import EpochIterator, PlanesConverter, draw

sizes = st.integers(1, 60)
seeds = st.integers(0, 2**32 - 1)


def epoch_of(iterator):
    """The batches up to the end of an epoch."""
    batches = []
    while not batches or not iterator.is_new_epoch:
        batches.append(iterator.next())
    return batches


@given(sizes, sizes, seeds)
def test_an_epoch_holds_every_position_once(size, batch_size, seed):
    iterator = EpochIterator(size, batch_size, seed)
    for epoch in range(1, 3):
        batches = epoch_of(iterator)
        assert len(batches) == -(-size // batch_size)
        assert sorted(numpy.concatenate(batches)) == list(range(size))
        assert {len(batch) for batch in batches[:-1]} <= {batch_size}
        assert (iterator.epoch, iterator.current_position) == (epoch, 0)


def test_epochs_and_seeds_have_orders_of_their_own():
    iterators = [EpochIterator(50, 50, seed) for seed in (1, 2)]
    orders = [tuple(iterator.next()) for iterator in iterators for _ in range(3)]
    assert len(set(orders)) == 6


@given(sizes, sizes, seeds, st.integers(0, 12))
def test_a_place_that_was_saved_goes_on_the_same(size, batch_size, seed, steps):
    iterator = EpochIterator(size, batch_size, seed)
    for _ in range(steps):
        iterator.next()
    resumed = EpochIterator(size, batch_size, seed ^ 1)
    resumed.go_to(iterator.seed, iterator.epoch, iterator.current_position)
    for _ in range(5):
        numpy.testing.assert_array_equal(iterator.next(), resumed.next())
        assert iterator.epoch_detail == resumed.epoch_detail


@given(seeds, st.integers(0, 10**7), sizes, sizes)
def test_a_draw_has_no_position_twice(seed, iteration, size, count):
    numbers = draw(seed, iteration, size, count)
    assert len(set(numbers)) == len(numbers) == min(size, count)
    assert set(numbers) <= set(range(size))
    numpy.testing.assert_array_equal(numbers, draw(seed, iteration, size, count))


def test_a_draw_reaches_every_position():
    drawn = {number for iteration in range(60) for number in draw(0, iteration, 20, 4)}
    assert drawn == set(range(20))


@pytest.mark.parametrize("batch", [[3], [0, 2, 1], numpy.array([4, 4, 0])])
def test_a_batch_is_made_as_single_positions_are(device, batch):
    positions = make_positions(5, 0)
    sent = PlanesConverter(positions)(batch, device)
    assert all(isinstance(array, device.xp.ndarray) for array in sent)
    planes, labels, wins = map(chainer.backends.cuda.to_cpu, sent)
    assert [planes.dtype, labels.dtype, wins.dtype] == [numpy.float32, numpy.int32, numpy.float32]
    for number, plane, label, win in zip(batch, planes, labels, wins):
        expected, expected_label, expected_win = make_features(positions[number])
        numpy.testing.assert_array_equal(plane, expected)
        assert label == expected_label
        numpy.testing.assert_equal(win, numpy.float32(expected_win))  # unknown is nan


def test_the_next_batch_is_announced_one_batch_ahead():
    iterator = EpochIterator(20, 8, 3)
    announced = []
    iterator.announce = announced.append
    batches = [next(iterator) for _ in range(7)]  # over the ends of two epochs
    assert len(announced) >= 6
    for ahead, batch in zip(announced, batches[1:]):
        assert ahead.tolist() == batch.tolist()
