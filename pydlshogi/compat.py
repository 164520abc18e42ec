"""Chainer 7.8.1, made importable on current Python and numpy.

Every module of ours takes Chainer from here and never by ``import chainer``::

    from pydlshogi.compat import chainer

    F = chainer.functions
    L = chainer.links

so that no order of imports, and no tool that sorts them, can bring back the
failure. Two things that Chainer needs at import are gone today:

- ``chainer._environment_check`` imports ``numpy.distutils`` and
  ``pkg_resources``, only to print advice on the installation. A module of that
  name with an empty ``check`` stands in for it.
- ``chainer.functions.array.as_strided`` reads ``numpy.sctypes``, which numpy 2.0
  removed. It is lent to numpy while Chainer is imported, then taken back: nobody
  else should see a name that numpy no longer has.

CuPy from version 14 on has no cuDNN; Chainer warns of that at import unless
``CHAINER_CUDNN`` is 0, so it is set to 0 unless the user has set it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
from collections.abc import Iterator

import numpy

# What numpy.sctypes was in numpy 1.x, as far as Chainer reads it.
_SCTYPES = {
    "int": [numpy.int8, numpy.int16, numpy.int32, numpy.int64],
    "uint": [numpy.uint8, numpy.uint16, numpy.uint32, numpy.uint64],
    "float": [numpy.float16, numpy.float32, numpy.float64],
    "complex": [numpy.complex64, numpy.complex128],
    "others": [bool, object, bytes, str, numpy.void],
}


@contextlib.contextmanager
def _names_chainer_needs() -> Iterator[None]:
    """Lends Chainer's import what numpy and setuptools have dropped."""
    check = types.ModuleType("chainer._environment_check")
    check.check = lambda: None  # type: ignore[attr-defined]
    sys.modules.setdefault("chainer._environment_check", check)
    os.environ.setdefault("CHAINER_CUDNN", "0")
    # Not hasattr(numpy, …): numpy 1.24+ warns, and 2.x raises, on some old names.
    lend = "sctypes" not in vars(numpy)
    if lend:
        numpy.sctypes = _SCTYPES  # type: ignore[attr-defined]
    try:
        yield
    finally:
        if lend:
            del numpy.sctypes  # type: ignore[attr-defined]


with _names_chainer_needs():
    import chainer
    import chainer.functions
    import chainer.links
    import chainer.training.extensions

__all__ = ["chainer"]
