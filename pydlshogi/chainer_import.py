"""Lets a plain ``import chainer`` succeed on current Python and numpy.

Chainer 7.8.1 needs two things at import that are gone today:

- ``chainer._environment_check`` imports ``numpy.distutils`` and ``pkg_resources``. It only
  prints advice on the installation, so an empty module takes its place.
- ``chainer.functions.array.as_strided`` reads ``numpy.sctypes``, which numpy 2.0 removed.
  numpy gets that attribute back while Chainer is imported, and loses it afterwards.

CuPy 14 has no cuDNN, and Chainer warns of that at import unless ``CHAINER_CUDNN`` is 0. The
variable is set to 0 unless the user has set it. Chainer also looks for NCCL, which only training
on several GPUs needs; CuPy's warning that NCCL is missing is not shown.

:func:`install` adds a finder to ``sys.meta_path``. An installation of this package calls it at
every start of Python, by the file ``pydlshogi.pth`` (see setup.py). Scripts written for the book
begin with ``import chainer``, so the finder must be there before their first line.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
from importlib.machinery import ModuleSpec, PathFinder

TYPE_CHECKING = False  # typing would be loaded at every start of Python
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


def install() -> None:
    """Adds the finder, once. It imports neither numpy nor Chainer."""
    # By name: pydlshogi.pth drops this module, so that scripts import their own clone's package.
    if not any(type(finder).__name__ == _ChainerFinder.__name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, _ChainerFinder())  # type: ignore[arg-type]


class _ChainerFinder:
    """Finds ``chainer`` where Python finds it, and gives it :class:`_ChainerLoader`."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Finds the module; None for every other name, which other finders look for."""
        if fullname != "chainer":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        # A folder without __init__.py has no loader of its own.
        if spec is not None and spec.loader is not None and spec.origin is not None:
            spec.loader = _ChainerLoader(spec.loader)  # type: ignore[assignment]
        return spec


class _ChainerLoader:
    """Loads a module by Python's own loader, with what Chainer's import needs."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> types.ModuleType | None:
        """Leaves the making of the module to Python's loader."""
        module: types.ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Runs the module's code."""
        # Later readers of the module's loader, such as inspect and pkgutil, get Python's own.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with _what_chainer_needs():
            self._loader.exec_module(module)


@contextlib.contextmanager
def _what_chainer_needs() -> Iterator[None]:
    """Provides the module and the attribute that Chainer's import needs."""
    import warnings

    import numpy

    check = types.ModuleType("chainer._environment_check")
    check.check = lambda: None  # type: ignore[attr-defined]
    sys.modules.setdefault("chainer._environment_check", check)
    os.environ.setdefault("CHAINER_CUDNN", "0")
    # Not hasattr(numpy, …): numpy 1.24+ warns, and 2.x raises, on some old names.
    missing = "sctypes" not in vars(numpy)
    if missing:
        numpy.sctypes = {  # type: ignore[attr-defined]
            "int": [numpy.int8, numpy.int16, numpy.int32, numpy.int64],
            "uint": [numpy.uint8, numpy.uint16, numpy.uint32, numpy.uint64],
            "float": [numpy.float16, numpy.float32, numpy.float64],
            "complex": [numpy.complex64, numpy.complex128],
            "others": [bool, object, bytes, str, numpy.void],
        }
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"\s*nccl library could not be loaded")
            yield
    finally:
        if missing:
            del numpy.sctypes  # type: ignore[attr-defined]
