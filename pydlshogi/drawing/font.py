"""The Japanese font of pictures and pages: IPAexGothic, from the package matplotlib-fontja.

Text looks the same on every machine. Pictures contain outlines of the characters; pages
contain the part of the font that they need. The IPA Font License allows both.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydlshogi.figure import DrawingError, no_matplotlib

_PACKAGE, _FILE = "matplotlib_fontja", "fonts/ipaexg.ttf"

#: How to install what pictures need.
INSTALL = 'python -m pip install "matplotlib>=3.6" matplotlib-fontja'


def font_path() -> Path | None:
    """Returns the font file; None if the package is not installed.

    The package is not imported, because its import changes matplotlib's settings.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or ():
        if (path := Path(folder) / _FILE).exists():
            return path
    return None


def required_font() -> Path:
    """Returns the font file; raises ``DrawingError`` if the package is not installed."""
    path = font_path()
    if path is None:
        raise DrawingError(f"the Japanese font is not installed. Install it: {INSTALL}")
    return path


def family_of(path: Path) -> str:
    """Makes a font file known to matplotlib, and returns the name of its family."""
    from matplotlib import font_manager

    if all(font.fname != str(path) for font in font_manager.fontManager.ttflist):
        font_manager.fontManager.addfont(str(path))
    return font_manager.FontProperties(fname=str(path)).get_name()


def font_subset(text: str) -> bytes | None:
    """Returns a WOFF file with the characters of a text that the font has; None without a font."""
    path = font_path()
    if path is None:
        return None
    from fontTools import subset

    options = subset.Options(flavor="woff", layout_features=[], name_IDs=[0, 13, 14])
    font = subset.load_font(str(path), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=text)
    subsetter.subset(font)
    buffer = io.BytesIO()
    subset.save_font(font, buffer, options)
    return buffer.getvalue()


@contextlib.contextmanager
def japanese_figure(width: float, height: float) -> Iterator[Any]:
    """Makes an empty ``Figure`` (sizes in inches), in which text appears in the Japanese font.

    The settings of matplotlib hold while the context is open.

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
