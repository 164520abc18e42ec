"""Which positions make a batch, and what a batch is."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training_helpers import make_positions

from pydlshogi.compat import chainer
from pydlshogi.features import make_features
from pydlshogi.training.batches import EpochIterator, PlanesConverter, draw, mirror

CPU = chainer.get_device("@numpy")
to_cpu = chainer.backends.cuda.to_cpu

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


@given(sizes, sizes, seeds)
def test_mirrored_positions_come_in_the_same_order(size, batch_size, seed):
    plain, mirrored = (EpochIterator(size, batch_size, seed, flag) for flag in (False, True))
    announced = []
    mirrored.announce = announced.append
    for _ in range(5):
        numpy.testing.assert_array_equal(plain.next(), mirrored.next() % size)
        assert announced[-1].max() < size


def test_half_of_the_positions_are_mirrored_and_others_every_epoch():
    iterator = EpochIterator(1000, 50, 3, mirrored=True)
    found = []
    for _ in range(2):
        numbers = numpy.concatenate(epoch_of(iterator))
        found.append(sorted(numbers[numbers >= 1000]))
        assert 430 < len(found[-1]) < 570
    assert found[0] != found[1]
    again = EpochIterator(1000, 50, 3, mirrored=True)
    assert (
        sorted(number for number in numpy.concatenate(epoch_of(again)) if number >= 1000)
        == found[0]
    )


def test_epochs_and_seeds_have_orders_of_their_own():
    iterators = [EpochIterator(50, 50, seed) for seed in (1, 2)]
    orders = [tuple(iterator.next()) for iterator in iterators for _ in range(3)]
    assert len(set(orders)) == 6


@given(sizes, sizes, seeds, st.integers(0, 12), st.booleans())
def test_a_place_that_was_saved_goes_on_the_same(size, batch_size, seed, steps, mirrored):
    iterator = EpochIterator(size, batch_size, seed, mirrored)
    for _ in range(steps):
        iterator.next()
    resumed = EpochIterator(size, batch_size, seed ^ 1, mirrored)
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


def test_numbers_above_the_last_position_are_mirror_images(device):
    positions = make_positions(5, 1)
    both = numpy.concatenate([positions, mirror(positions)])
    found = [to_cpu(array) for array in PlanesConverter(positions)([3, 8, 5], device)]
    expected = PlanesConverter(both)([3, 8, 5], CPU)
    for one, other in zip(found, expected):
        numpy.testing.assert_array_equal(one, other)
    numpy.testing.assert_array_equal(found[0][0], found[0][1][:, :, ::-1])


@pytest.mark.parametrize("batch", [[3], [0, 2, 1], numpy.array([4, 4, 0])])
def test_a_batch_is_made_as_single_positions_are(device, batch):
    positions = make_positions(5, 0)
    sent = PlanesConverter(positions)(batch, device)
    assert all(isinstance(array, device.xp.ndarray) for array in sent)
    planes, labels, wins = map(to_cpu, sent)
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
