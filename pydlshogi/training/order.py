"""The order of the positions in an epoch: a random permutation for each seed and epoch.

A set that fits into memory is shuffled by numpy. The order of a large one is computed number
by number: a table of 10⁹ numbers would take 8 GB in each process.

A keyed Feistel network is a permutation of 0 … 4^h - 1. It maps the halves (l, r) of a number
to (r, l ⊕ f(r)) several times; f may be any function. Numbers that leave 0 … n - 1 are mapped
again until they return (cycle walking), so that a permutation of 0 … n - 1 remains.

Sources: M. Luby, C. Rackoff, How to Construct Pseudorandom Permutations from Pseudorandom
Functions, SIAM J. Comput. 17 (1988); J. Black, P. Rogaway, Ciphers with Arbitrary Finite
Domains, CT-RSA 2002.
"""

from __future__ import annotations

from typing import Any

import numpy

#: Sets with more positions than this have a computed order.
LARGE = 1 << 24

#: Kinds of order, as a state file names them.
SHUFFLED, COMPUTED = "shuffled", "computed"

_ROUNDS = 8
_FACTOR = numpy.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: its bits have no pattern
_SHIFTS = (numpy.uint64(32), numpy.uint64(29))


def random_of(*numbers: int) -> numpy.random.RandomState:
    """Makes a generator that is a pure function of some numbers, each 0..2**32-1.

    numpy keeps the numbers of RandomState in every version, and a run may be resumed with another.
    """
    return numpy.random.RandomState(list(numbers))


def kind_for(size: int) -> str:
    """Returns the kind of order of a new run with ``size`` positions."""
    return COMPUTED if size > LARGE else SHUFFLED


def make_order(size: int, random: numpy.random.RandomState, kind: str | None = None) -> Any:
    """Makes a random permutation of 0 … size - 1; its slices are int64 arrays."""
    computed = (kind or kind_for(size)) == COMPUTED
    return ComputedOrder(size, random) if computed else random.permutation(size)


class ComputedOrder:
    """A permutation of 0 … size - 1 (1 to 2**62) that takes no memory."""

    def __init__(self, size: int, random: numpy.random.RandomState) -> None:
        self._size = numpy.uint64(size)
        self._half = numpy.uint64(max(1, -(-(size - 1).bit_length() // 2)))
        self._mask = numpy.uint64((1 << int(self._half)) - 1)
        self._keys = random.randint(0, 1 << 63, _ROUNDS, dtype=numpy.uint64)

    def __len__(self) -> int:
        return int(self._size)

    def __getitem__(self, places: slice) -> numpy.ndarray:
        """Computes a part of the order: int64."""
        numbers = self._permute(numpy.arange(*places.indices(len(self)), dtype=numpy.uint64))
        outside = numpy.flatnonzero(numbers >= self._size)
        while len(outside):
            numbers[outside] = self._permute(numbers[outside])
            outside = outside[numbers[outside] >= self._size]
        return numbers.astype(numpy.int64)

    def _permute(self, numbers: numpy.ndarray) -> numpy.ndarray:
        """Maps numbers of twice ``_half`` bits to such numbers."""
        left, right = numbers >> self._half, numbers & self._mask
        for key in self._keys:
            mixed = (right + key) * _FACTOR
            for shift in _SHIFTS:
                mixed ^= mixed >> shift
                mixed *= _FACTOR
            # The upper bits of a product depend on all bits.
            left, right = right, left ^ (mixed >> (numpy.uint64(64) - self._half))
        return left << self._half | right
