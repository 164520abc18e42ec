#!/usr/bin/env python3
"""Starts the USI engine: the file that a GUI on Linux or Mac registers."""

import importlib.util
import os
import sys
from pathlib import Path

#: Environment variable that tells the Python of .venv that it was started from here.
GONE_OVER = "PYDLSHOGI_VENV"


def go_over_to_venv() -> None:
    """Goes on in the Python of .venv where this one has no Chainer.

    A GUI starts this file by its first line, with no environment activated.
    """
    folder = Path(__file__).resolve().parent
    venv = folder / ".venv"
    python = venv / "bin" / "python"
    without_chainer = importlib.util.find_spec("chainer") is None
    # Once only: a .venv may be no environment of its own, and lack Chainer too.
    if without_chainer and python.exists() and os.environ.get(GONE_OVER) != str(venv):
        os.environ[GONE_OVER] = str(venv)
        os.execv(python, [str(python), str(folder / "policy_player_usi.py"), *sys.argv[1:]])


if __name__ == "__main__":
    go_over_to_venv()
    from pydlshogi.usi.main import main

    sys.exit(main())
