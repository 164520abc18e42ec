"""Lets OpenBLAS choose its kernels: import this before numpy.

Some environments pin OpenBLAS to an old processor's kernels, which halves its speed.
OpenBLAS looks at the variables when numpy loads it, so a script imports this module
first; processes that it starts inherit the mended environment.
"""

from __future__ import annotations

import os

#: The variables that pin it.
PINS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")

for _pin in PINS:
    os.environ.pop(_pin, None)
