"""The errors that a user can cause."""

from __future__ import annotations

import sys

# Packages that pip knows by another name than Python.
_NAMES_ON_PYPI = {"shogi": "python-shogi", "matplotlib_fontja": "matplotlib-fontja"}


class UserError(Exception):
    """The program cannot do what it was asked to do.

    The text is one or two sentences: what is wrong, where, and what to do. A program
    prints it without a traceback (:mod:`pydlshogi.commands.program`).
    """


def missing_package(error: ImportError) -> str:
    """Says what to do when a Python package is not installed, or cannot be imported."""
    package = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError):
        reason = " ".join(str(error).split())[:200]
        return (
            f"{sys.executable} cannot import the Python package {package} ({reason}). Install it "
            "again as docs/install.md says, or use the .venv of the clone."
        )
    remedy = f"Install it: python -m pip install {_NAMES_ON_PYPI.get(package, package)}"
    if package == "chainer":  # it needs an old setuptools before it
        remedy = "Install it as docs/install.md says, or use the .venv of the clone."
    return f"the Python package {package} is not installed in {sys.executable}. {remedy}"
