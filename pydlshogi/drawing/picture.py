"""Figures with Japanese text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pydlshogi.drawing.font import INSTALL, required_font
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
        from matplotlib import font_manager
        from matplotlib.figure import Figure
    except ImportError:
        raise no_matplotlib(INSTALL) from None
    path = str(required_font())
    if all(font.fname != path for font in font_manager.fontManager.ttflist):
        font_manager.fontManager.addfont(path)
    family = font_manager.FontProperties(fname=path).get_name()
    settings: Any = {
        "font.family": [family],
        "axes.unicode_minus": False,
        "text.parse_math": False,  # a name may have dollar signs
        "svg.fonttype": "path",
    }
    with matplotlib.rc_context(settings):
        yield Figure(figsize=(width, height))
