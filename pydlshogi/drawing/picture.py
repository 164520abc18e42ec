"""Figures with Japanese text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pydlshogi.drawing.font import INSTALL, family_of, required_font
from pydlshogi.figure import no_matplotlib


@contextlib.contextmanager
def japanese_figure(width: float, height: float) -> Iterator[Any]:
    """Makes an empty figure, in which text appears in the Japanese font.

    The settings of matplotlib hold while the context is open.

    Args:
        width, height: Size in inches.

    Yields:
        ``matplotlib.figure.Figure``.

    Raises:
        DrawingError: matplotlib or the font is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise no_matplotlib(INSTALL) from None
    settings: Any = {
        "font.family": [family_of(required_font())],
        "axes.unicode_minus": False,
        "text.parse_math": False,  # a name may have dollar signs
        "svg.fonttype": "path",
    }
    with matplotlib.rc_context(settings):
        yield Figure(figsize=(width, height))
