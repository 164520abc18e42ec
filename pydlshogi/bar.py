"""Progress bars of long work, on standard error if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


def is_terminal(stream: Any) -> bool:
    """Says whether a standard stream is a terminal; it may be closed, or None."""
    return stream is not None and not stream.closed and stream.isatty()


def bar(items: Iterable[Any] | None = None, **options: Any) -> Any:
    """Makes a ``tqdm`` that shows nothing in a pipe; the arguments are tqdm's."""
    return tqdm(items, disable=not is_terminal(sys.stderr), **options)
