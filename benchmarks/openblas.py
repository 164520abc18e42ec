"""Lets OpenBLAS choose its kernels; must be imported before numpy.

Some environments force the kernels of an old processor by variables, which halves the
speed. OpenBLAS reads the variables when numpy is imported. Child processes inherit the
corrected environment.
"""

from __future__ import annotations

import os

#: Variables that force the kernels.
PINS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")

for _pin in PINS:
    os.environ.pop(_pin, None)
