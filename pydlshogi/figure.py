"""Figures of matplotlib, written atomically as PNG, SVG or PDF. No display is needed."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydlshogi.errors import UserError
from pydlshogi.files import is_disk_full, not_written, write_beside

#: How to install matplotlib.
INSTALL = "python -m pip install matplotlib"

#: Dots per inch of a PNG.
_DPI = 110

#: Suffixes of the formats, without the dot.
_FORMATS = ("png", "svg", "pdf")

# The first bytes of a PNG.
_PNG = b"\x89PNG\r\n\x1a\n"

# The same picture gives the same PNG, SVG or PDF: without random names and the time.
_SETTINGS: Any = {"svg.hashsalt": "pydlshogi"}
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}


class DrawingError(UserError):
    """Something cannot be drawn or written."""


def no_matplotlib(install: str = INSTALL) -> DrawingError:
    """Makes the error for a missing matplotlib, with the command that installs it."""
    return DrawingError(f"matplotlib is not installed. Install it: {install}")


def new_figure(width: float, height: float) -> Any:
    """Makes an empty ``matplotlib.figure.Figure`` of a size in inches.

    Raises:
        DrawingError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise no_matplotlib() from None
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, output: str | os.PathLike[str]) -> None:
    """Writes a ``matplotlib.figure.Figure`` atomically; makes the folder if needed.

    The suffix of the file determines the format; without one it is PNG.

    Raises:
        DrawingError: the file cannot be written, or :func:`check_picture` refuses it.
    """
    import matplotlib

    output = Path(output)
    check_picture(output)
    format_ = output.suffix[1:].lower() or "png"
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with matplotlib.rc_context(_SETTINGS), _boxes(), write_beside(output) as file:
            figure.savefig(file, format=format_, dpi=_DPI, metadata=_METADATA.get(format_))
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and is_disk_full(error):
            raise DrawingError(not_written(f"the picture {output}", error)) from None
        # ValueError: a size that the format refuses.
        raise _cannot_be_written(output, getattr(error, "strerror", None) or error) from None


def _cannot_be_written(output: Path, reason: object) -> DrawingError:
    return DrawingError(
        f"the picture {output} cannot be written ({reason}). Choose another file. Name a "
        ".png, .svg or .pdf file in a folder that can be written to."
    )


@contextlib.contextmanager
def _boxes() -> Iterator[None]:
    """Silences the warnings of characters that the font lacks, as in names; they become boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield


def check_picture(output: str | os.PathLike[str]) -> None:
    """Checks the format of a picture, and that it does not replace a file such as a model.

    Raises:
        DrawingError: the suffix is none of .png, .svg and .pdf; or the file has no suffix, is not
            empty and is no PNG.
    """
    output = Path(output)
    if output.suffix:
        if output.suffix[1:].lower() not in _FORMATS:
            raise _cannot_be_written(output, "its suffix is not .png, .svg or .pdf")
        return
    if not output.is_file():
        return
    with contextlib.suppress(OSError), output.open("rb") as file:  # a write reports the error
        if file.read(len(_PNG)) not in (b"", _PNG):
            raise DrawingError(
                f"{output} exists already and is no picture. Choose another file, one with "
                "the suffix .png, .svg or .pdf."
            )
