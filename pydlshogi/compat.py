"""Chainer 7.8.1, importable on current Python and numpy.

Every module of this package takes Chainer from here::

    from pydlshogi.compat import chainer

    F = chainer.functions
    L = chainer.links

A plain ``import chainer`` works too, after this module or where the package is installed:
:mod:`pydlshogi.chainer_import` says what Chainer needs and how it gets it.
"""

from __future__ import annotations

from pydlshogi import chainer_import

chainer_import.install()

import chainer  # noqa: E402
import chainer.functions  # noqa: E402
import chainer.links  # noqa: E402
import chainer.training.extensions  # noqa: E402

__all__ = ["chainer"]
