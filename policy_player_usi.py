#!/usr/bin/env python3
"""Starts the USI engine: the file that a GUI on Linux or Mac registers."""

import importlib.util
import os
import sys
from pathlib import Path

#: Environment variable that tells the Python of .venv that it was started from here.
GONE_OVER = "PYDLSHOGI_VENV"

#: What the engine imports and Python does not bring.
NEEDED = ("chainer", "numpy", "shogi", "threadpoolctl")


def is_unfit() -> bool:
    """Says whether this Python is too old for the engine, or lacks what it needs.

    Readers of the book have such a one: Chainer is there, in a Python of its time. This
    file itself must not use anything that is newer than that.
    """
    return sys.version_info < (3, 9) or any(
        importlib.util.find_spec(name) is None for name in NEEDED
    )


def go_over_to_venv() -> None:
    """Goes on in the Python of .venv where this one is unfit.

    A GUI starts this file by its first line, with no environment activated.
    """
    folder = Path(__file__).resolve().parent
    venv = folder / ".venv"
    python = venv / "bin" / "python"
    # Once only: a .venv may be no environment of its own, and be unfit too.
    if is_unfit() and python.exists() and os.environ.get(GONE_OVER) != str(venv):
        os.environ[GONE_OVER] = str(venv)
        os.execv(str(python), [str(python), str(folder / "policy_player_usi.py"), *sys.argv[1:]])


if __name__ == "__main__":
    go_over_to_venv()
    from pydlshogi.commands.policy_player_usi import main

    sys.exit(main())
