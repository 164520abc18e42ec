"""Winograd's minimal filtering F(3×3, 3×3) for 9×9 boards, forward and backward.

**One dimension.** A filter g of 3 numbers and a vector h of 3 numbers are polynomials of
degree 2. Their product has 5 coefficients, so its values at 5 points determine it. Each
value is the product of two values: 5 multiplications instead of 9. The points are
p = 0, 1, −1, 2 and infinity (where the "value" is the leading coefficient):

- values of g and of h: V g and V h, where V (5×3) has the rows (1, p, p²) and (0, 0, 1);
- back to coefficients (Lagrange): N · diag(1/f) · values. Column p of N (5×5) holds the
  coefficients of the product of (x − q) over the other finite points q. f is the value of
  that product at p (1 for infinity).

So ``g * h = N diag(1/f) [(V g) ⊙ (V h)]``. Filtering, y_i = Σ_k g_k d_{i+k}, computes three
outputs from five inputs d. For fixed g it is the transpose of that map:

    y = Aᵀ [(G g) ⊙ (Bᵀ d)]     with  Aᵀ = Vᵀ (3×5),  G = diag(1/f) V (5×3),  Bᵀ = Nᵀ (5×5).

**Two dimensions.** The same along rows, then along columns. A board consists of exactly
3×3 tiles of 3×3 outputs. Each tile depends on 5×5 inputs of the board padded by one: 25
multiplications give 9 outputs, where direct filtering needs 81. Over the channels, each of
the 25 is a matrix product. These products take most of the time.

**On a board.** The three overlapping tiles of a padded row of 9 are one constant matrix
``SPREAD`` (15×9; its zeros are the padding). The outputs of three tiles are one matrix
``GATHER`` (9×15). With x of shape (row, column, board, channel), the convolution is

    tiles = SPREAD x SPREADᵀ         (25, 9·boards, channels in)      rows, then columns
    products = tiles · filters       (25, 9·boards, channels out)     25 matrix products
    y = GATHER products GATHERᵀ

Every step is a matrix product without copies. Each map is linear, so the gradients are the
transposes. GATHERᵀ gy GATHER is the gradient of the products. A product with the tiles gives
the gradient of the filters; a product with the filters gives that of the tiles. SPREADᵀ ·
SPREAD gives gx.

**Bias.** The column of Aᵀ for the point 1 is all ones. So a number added to the product at
the point (1, 1) is added to all nine outputs of the tile. The bias is added there, and its
gradient is read there.

Sources: S. Winograd, Arithmetic Complexity of Computations, SIAM 1980; A. Lavin and
S. Gray, Fast Algorithms for Convolutional Neural Networks, arXiv:1509.09308 (2015).

Arrays have Chainer's shape (boards, channels, 9, 9) and the memory order (9, 9, boards,
channels). Then the rows of each of the 25 products are evenly spaced, and nothing is copied
between two layers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy

from pydlshogi.layers.cpu.threads import Workspace, in_threads, plan, shares

#: Length of a side of the board.
SIDE = 9

#: Length of a side: outputs of a tile, taps of the filter, tiles of the board.
_OUT, _TAPS, TILES = 3, 3, 3

#: The finite points; infinity follows as the last point.
_POINTS = (0, 1, -1, 2)

#: Number of points.
VALUES = len(_POINTS) + 1


def _one_dimension() -> tuple[Any, Any, Any]:
    """Returns Aᵀ (3×5), G (5×3) and Bᵀ (5×5) of the module's docstring, in float64."""
    values = numpy.vander(_POINTS, _OUT, increasing=True).astype(float)
    values = numpy.vstack([values, numpy.eye(_OUT)[-1]])
    others = [[q for q in _POINTS if q != p] for p in _POINTS]
    numerators = numpy.zeros((VALUES, VALUES))
    for row, roots in enumerate([*others, list(_POINTS)]):
        numerators[row, : len(roots) + 1] = numpy.poly(roots)[::-1]
    scale = [numpy.prod([p - q for q in rest]) for p, rest in zip(_POINTS, others)] + [1]
    return values.T, values / numpy.array(scale)[:, None], numerators


def _board_matrices() -> tuple[Any, Any, Any]:
    """Returns SPREAD (15×9), GATHER (9×15) and the filter's matrix (25×9), in float32."""
    a_t, g, b_t = _one_dimension()
    spread = numpy.zeros((VALUES, TILES, SIDE + 2))
    gather = numpy.zeros((TILES, _OUT, VALUES, TILES))
    for tile in range(TILES):
        first = tile * _OUT
        spread[:, tile, first : first + VALUES] = b_t
        gather[tile, :, :, tile] = a_t
    return (
        spread[:, :, 1:-1].reshape(VALUES * TILES, SIDE).astype(numpy.float32),
        gather.reshape(SIDE, VALUES * TILES).astype(numpy.float32),
        numpy.kron(g, g).astype(numpy.float32),
    )


SPREAD, GATHER, FILTER = _board_matrices()

#: Axes from (board, channel, row, column) to (row, column, board, channel), and back.
_IN_MEMORY = (2, 3, 0, 1)

#: Number of the product at the point (1, 1), which takes the bias.
BIAS = _POINTS.index(1) * VALUES + _POINTS.index(1)

#: Largest number of boards in a chunk: the products run at full speed, and the tiles of the
#: chunk fit into the cache.
_CHUNK = 16

#: Smallest number of boards for one thread.
_LEAST = 2

_workspace = Workspace()


def forward(x: Any, W: Any, b: Any, relu: bool) -> Any:
    """Convolves boards with 3×3 filters; the padding is one square of zeros.

    Args:
        x: (n, channels in, 9, 9) float32 in numpy, in any memory order; fastest in the
            order of the results of this function and of :func:`backward`.
        W: (channels out, channels in, 3, 3) float32.
        b: (channels out,) float32, or None.
        relu: Whether to apply ReLU to the result.

    Returns:
        (n, channels out, 9, 9) float32.
    """
    x = x.transpose(_IN_MEMORY)
    n, inputs, outputs = x.shape[2], x.shape[3], W.shape[0]
    y = numpy.empty((SIDE, SIDE, n * outputs), numpy.float32)
    chunks = plan(n, _LEAST, _CHUNK)
    shares_of_filters = shares(inputs, len(chunks))
    W = W.reshape(outputs, inputs, _TAPS**2).transpose(1, 2, 0)
    filters = _workspace("filters", (VALUES**2, inputs, outputs))
    # numpy compares with an array several times faster than with a scalar.
    zero = numpy.zeros(outputs, numpy.float32)

    def transform(thread: int) -> None:
        _transform(W, filters, slice(*shares_of_filters[thread]))

    def compute(thread: int) -> None:
        for start, stop in chunks[thread]:
            tiles = _to_tiles(SPREAD, x[:, :, start:stop].reshape(SIDE, SIDE, -1))
            products = _workspace("products", (VALUES**2, tiles[0].size // inputs, outputs))
            numpy.matmul(tiles.reshape(VALUES**2, -1, inputs), filters, out=products)
            if b is not None:
                products[BIAS] += b
            out = y[:, :, start * outputs : stop * outputs]
            _from_tiles(GATHER, products.reshape(VALUES**2, TILES**2, -1), out)
            if relu:
                out = out.reshape(SIDE, SIDE, stop - start, outputs)
                numpy.maximum(out, zero, out=out)

    in_threads(len(chunks), transform, compute)
    return y.reshape(SIDE, SIDE, n, outputs).transpose(_IN_MEMORY)


def backward(x: Any, W: Any, y: Any, gy: Any, indexes: Collection[int]) -> tuple[Any, Any, Any]:
    """Computes the gradients of :func:`forward`.

    Args:
        x, W: As in :func:`forward`.
        y: The result of :func:`forward` with ``relu``; None without.
        gy: Gradient of the result, of the same shape.
        indexes: The gradients that the caller uses: 0 of x (about a third of the work), 1 of W,
            2 of b.

    Returns:
        The gradients of x, W and b, in float32. That of x is None if the caller does not use it.
    """
    x, gy = x.transpose(_IN_MEMORY), gy.transpose(_IN_MEMORY)
    y = None if y is None else y.transpose(_IN_MEMORY)
    n, inputs, outputs = x.shape[2], x.shape[3], W.shape[0]
    chunks = plan(n, _LEAST, _CHUNK)
    shares_of_filters = shares(outputs, len(chunks))
    W = W.reshape(outputs, inputs, _TAPS**2).transpose(0, 2, 1)
    filters = _workspace("filters", (VALUES**2, outputs, inputs))
    # One sum for each thread, added in the order of the threads: reproducible results.
    sums = _workspace("sums", (len(chunks), VALUES**2, outputs, inputs))
    gb = numpy.zeros((len(chunks), outputs), numpy.float32)
    gW = numpy.empty((outputs, inputs, _TAPS**2), numpy.float32)
    need_gx = 0 in indexes
    gx = numpy.empty((SIDE, SIDE, n * inputs), numpy.float32) if need_gx else None

    def transform(thread: int) -> None:
        if need_gx:
            _transform(W, filters, slice(*shares_of_filters[thread]))

    def compute(thread: int) -> None:
        for number, (start, stop) in enumerate(chunks[thread]):
            g = gy[:, :, start:stop]
            if y is not None:
                g = numpy.multiply(g, y[:, :, start:stop] > 0, out=_workspace("masked", g.shape))
            gproducts = _to_tiles(GATHER.T, g.reshape(SIDE, SIDE, -1), "products")
            gproducts = gproducts.reshape(VALUES**2, -1, outputs)
            gb[thread] += gproducts[BIAS].sum(axis=0)
            tiles = _to_tiles(SPREAD, x[:, :, start:stop].reshape(SIDE, SIDE, -1))
            tiles = tiles.reshape(VALUES**2, -1, inputs)
            if number == 0:
                numpy.matmul(gproducts.transpose(0, 2, 1), tiles, out=sums[thread])
            else:
                term = _workspace("term", sums.shape[1:])
                sums[thread] += numpy.matmul(gproducts.transpose(0, 2, 1), tiles, out=term)
            if gx is not None:
                gtiles = numpy.matmul(gproducts, filters, out=tiles)
                out = gx[:, :, start * inputs : stop * inputs]
                _from_tiles(SPREAD.T, gtiles.reshape(VALUES**2, TILES**2, -1), out)

    def reduce(thread: int) -> None:
        rows = slice(*shares_of_filters[thread])
        total = sums[0, :, rows]
        for term in sums[1:, :, rows]:
            total += term
        numpy.matmul(total.transpose(1, 2, 0), FILTER, out=gW[rows])

    in_threads(len(chunks), transform, compute, reduce)
    if gx is not None:
        gx = gx.reshape(SIDE, SIDE, n, inputs).transpose(_IN_MEMORY)
    return gx, gW.reshape(outputs, inputs, _TAPS, _TAPS), gb.sum(axis=0)


def _transform(W: Any, filters: Any, rows: slice) -> None:
    """Transforms some rows of the filters W (rows, 9, columns) into (25, rows, columns)."""
    numpy.matmul(FILTER, W[rows], out=filters[:, rows].transpose(1, 0, 2))


def _to_tiles(matrix: Any, x: Any, name: str = "tiles") -> Any:
    """Applies a 15×9 matrix to the rows, then to the columns of boards x (9, 9, n).

    Returns (25, 9, n): point, tile, n; n is boards times channels.
    """
    n = x.shape[-1]
    rows = _workspace("rows", (VALUES * TILES, SIDE, n))
    numpy.matmul(matrix, x.transpose(1, 0, 2), out=rows.transpose(1, 0, 2))
    tiles = _workspace(name, (VALUES**2, TILES**2, n))
    numpy.matmul(matrix, rows.reshape(VALUES, TILES, SIDE, n), out=by_columns(tiles))
    return tiles


def _from_tiles(matrix: Any, tiles: Any, y: Any) -> None:
    """Applies a 9×15 matrix to the columns, then to the rows of tiles (25, 9, n): y (9, 9, n)."""
    n = y.shape[-1]
    rows = _workspace("rows", (VALUES * TILES, SIDE, n))
    numpy.matmul(matrix, by_columns(tiles), out=rows.reshape(VALUES, TILES, SIDE, n))
    numpy.matmul(matrix, rows.transpose(1, 0, 2), out=y.transpose(1, 0, 2))


def by_columns(tiles: Any) -> Any:
    """Views tiles (25, 9, n) as (point of the row, row of tiles, 15, n).

    The number of a tile is its column times 3 plus its row. So the 15 (point of the column,
    column of tiles) are evenly spaced in memory, as BLAS requires.
    """
    shape = (VALUES, VALUES * TILES, TILES, tiles.shape[-1])
    return tiles.reshape(shape).transpose(0, 2, 1, 3)
