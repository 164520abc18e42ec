"""``read_kifu``, the book's function that reads game records.

The readers are in :mod:`pydlshogi.kifu`. The book's scripts import this module with a
star, so it exports only ``read_kifu``.
"""

from __future__ import annotations

import logging
import os

from pydlshogi.kifu.reading import read_positions
from pydlshogi.positions import Positions

__all__ = ["read_kifu"]

_logger = logging.getLogger(__name__)


def read_kifu(
    kifu_list_file: str | os.PathLike[str], *, strict: bool = False, drop_duplicates: bool = False
) -> Positions:
    """Reads the records that a kifu list names. The cache is neither used nor written.

    Records that were left out are logged as warnings.

    Args:
        kifu_list_file: A text file. Each line is the path of a game record (CSA, KIF, KI2),
            a position file (HCPE, HCPE3, PSV), a folder or an archive.
        strict: Also leave out games with an illegal move. Much slower.
        drop_duplicates: Use only the first of several games with the same moves.

    Returns:
        Every position in which a move was played, in the order of the list.

    Raises:
        KifuError: the list is missing or empty, or none of its records can be used.
    """
    positions, report = read_positions(
        kifu_list_file, strict=strict, drop_duplicates=drop_duplicates
    )
    if report.excluded:
        for line in report.lines():
            _logger.warning("%s", line)
    return Positions(positions)
