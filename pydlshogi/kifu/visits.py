"""The visits of a search: how often it tried each of some moves of a position."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Sequence
from typing import Any

import numpy

#: A move that was tried: its label (:mod:`pydlshogi.features`), and its number of visits.
CANDIDATE = numpy.dtype([("label", "<u2"), ("count", "<u2")])


@dataclasses.dataclass(frozen=True)
class Visits:
    """The candidates of some positions, which may have different numbers of them.

    The candidates of position ``i`` are ``starts[i]`` … ``starts[i + 1] - 1``.

    Attributes:
        starts: (n + 1,) int64.
        candidates: (c,) of :data:`CANDIDATE`.
    """

    starts: numpy.ndarray
    candidates: numpy.ndarray

    @classmethod
    def none(cls, count: int) -> Visits:
        """Makes the visits of ``count`` positions that were not searched."""
        return cls(numpy.zeros(count + 1, numpy.int64), numpy.empty(0, CANDIDATE))

    @property
    def labels(self) -> numpy.ndarray:
        """Label of each candidate, (c,) uint16."""
        return self.candidates["label"]

    @property
    def counts(self) -> numpy.ndarray:
        """Number of visits of each candidate, (c,) uint16."""
        return self.candidates["count"]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: Any) -> Visits:
        """Copies the visits of some positions.

        Args:
            rows: Numbers of the positions, an array of integers or a slice.
        """
        numbers = numpy.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        lengths = self.starts[numbers + 1] - self.starts[numbers]
        starts = _starts_of(lengths)
        places = numpy.repeat(self.starts[numbers] - starts[:-1], lengths)
        return Visits(starts, self.candidates[places + numpy.arange(len(places))])

    def checksum(self) -> int:
        """Computes a CRC-32 of the content."""
        return zlib.crc32(self.candidates.tobytes(), zlib.crc32(self.starts.tobytes()))


def _starts_of(lengths: numpy.ndarray) -> numpy.ndarray:
    """Turns the numbers of candidates of n positions into ``starts``, (n + 1,) int64."""
    return numpy.concatenate([[0], numpy.cumsum(lengths, dtype=numpy.int64)])


def join(parts: Sequence[Visits]) -> Visits:
    """Joins the visits of consecutive positions."""
    if not parts:
        return Visits.none(0)
    lengths = numpy.concatenate([numpy.diff(part.starts) for part in parts])
    return Visits(_starts_of(lengths), numpy.concatenate([part.candidates for part in parts]))
