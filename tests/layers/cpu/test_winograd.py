import numpy as np
import pytest

from pydlshogi.layers.cpu import winograd


def test_one_dimension_is_filtering():
    a_t, g, b_t = winograd._one_dimension()
    assert (a_t.shape, g.shape, b_t.shape) == ((3, 5), (5, 3), (5, 5))
    for d in np.eye(5):
        for taps in np.eye(3):
            expected = np.correlate(d, taps, mode="valid")
            np.testing.assert_allclose(a_t @ ((g @ taps) * (b_t @ d)), expected, atol=1e-12)


def test_the_transform_of_the_inputs_is_exact():
    # Whole numbers: the planes, 0 and 1, are transformed without rounding.
    np.testing.assert_array_equal(winograd.SPREAD, np.round(winograd.SPREAD))
    np.testing.assert_array_equal(winograd.GATHER, np.round(winograd.GATHER))


@pytest.mark.parametrize("tile", range(3))
def test_a_tile_of_a_row_is_its_five_squares(tile):
    _, _, b_t = winograd._one_dimension()
    row = np.arange(1.0, 10.0)
    padded = np.pad(row, 1)
    expected = b_t @ padded[3 * tile : 3 * tile + 5]
    np.testing.assert_array_equal((winograd.SPREAD @ row).reshape(5, 3)[:, tile], expected)


def test_a_row_is_filtered_through_its_tiles():
    random = np.random.RandomState(0)
    row, taps = random.standard_normal(9), random.standard_normal(3)
    _, g, _ = winograd._one_dimension()
    products = np.repeat(g @ taps, 3) * (winograd.SPREAD @ row)
    expected = np.correlate(np.pad(row, 1), taps, mode="valid")
    np.testing.assert_allclose(winograd.GATHER @ products, expected, atol=1e-6)


def test_the_bias_goes_to_every_square():
    products = np.zeros((25, 9))
    products[winograd.BIAS] = 1
    gather = winograd.GATHER.reshape(9, 5, 3)
    # A tile's number is its column times 3 plus its row.
    tiles = products.reshape(5, 5, 3, 3)
    y = np.einsum("yus,xvt,uvts->yx", gather, gather, tiles)
    np.testing.assert_array_equal(y, np.ones((9, 9)))
