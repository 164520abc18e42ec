"""Figures of matplotlib to files: PNG, SVG or PDF."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydlshogi.drawing.font import INSTALL, DrawingError, required_font
from pydlshogi.files import write_beside

#: Dots per inch of a PNG.
_DPI = 110

# The same picture gives the same file: no time, no random names.
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}


@contextlib.contextmanager
def new_figure(width: float, height: float) -> Iterator[Any]:
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
        raise DrawingError(f"matplotlib is not installed. Install it: {INSTALL}") from None
    path = str(required_font())
    if all(font.fname != path for font in font_manager.fontManager.ttflist):
        font_manager.fontManager.addfont(path)
    family = font_manager.FontProperties(fname=path).get_name()
    settings: Any = {
        "font.family": [family],
        "axes.unicode_minus": False,
        "text.parse_math": False,  # a name may have dollar signs
        "svg.fonttype": "path",
        "svg.hashsalt": "pydlshogi",
    }
    with matplotlib.rc_context(settings):
        yield Figure(figsize=(width, height))


def save_figure(figure: Any, output: str | os.PathLike[str]) -> None:
    """Writes a figure atomically; makes the folder if needed. Needs no display.

    Args:
        figure: ``matplotlib.figure.Figure``.
        output: The file. Its suffix determines the format; PNG without one.

    Raises:
        DrawingError: the file cannot be written.
    """
    output = Path(output)
    format_ = output.suffix[1:].lower() or "png"
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with write_beside(output) as file:
            figure.savefig(file, format=format_, dpi=_DPI, metadata=_METADATA.get(format_))
    except (OSError, ValueError, RuntimeError) as error:
        # ValueError: unknown format. RuntimeError: a format that needs TeX.
        raise DrawingError(
            f"picture {output} cannot be written ({error}). Name a .png, .svg or .pdf file in a "
            "folder that can be written to."
        ) from None
