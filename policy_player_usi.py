#!/usr/bin/env python3
"""Starts the USI engine: the file that a GUI on Linux or Mac registers."""

import importlib.util
import os
import sys
from pathlib import Path

#: Environment variable that tells the Python of .venv that this file has started it.
GONE_OVER = "PYDLSHOGI_VENV"

#: Modules that the engine needs and Python does not bring.
NEEDED = ("chainer", "numpy", "shogi", "threadpoolctl")


def is_unfit() -> bool:
    """Says whether this Python is too old for the engine, or lacks a module.

    Readers of the book may have such a Python, with Chainer and of the same age. This file
    itself must therefore run on an old Python.
    """
    return sys.version_info < (3, 9) or any(
        importlib.util.find_spec(name) is None for name in NEEDED
    )


def go_over_to_venv() -> None:
    """Restarts in the Python of .venv if this Python is unfit.

    A GUI starts this file by its first line, without an activated environment.
    """
    folder = Path(__file__).resolve().parent
    venv = folder / ".venv"
    # Only once: .venv may be no environment of its own, and be unfit too.
    if not is_unfit() or os.environ.get(GONE_OVER) == str(venv):
        return
    python = str(venv / "bin" / "python")
    os.environ[GONE_OVER] = str(venv)
    try:
        os.execv(python, [python, str(folder / Path(__file__).name), *sys.argv[1:]])
    except (FileNotFoundError, NotADirectoryError):
        del os.environ[GONE_OVER]  # there is no .venv
    except OSError as error:
        sys.exit(
            f"{Path(__file__).name}: {python} cannot be executed ({error.strerror}). "
            "Make it executable for this user, or remove .venv and run make train."
        )


if __name__ == "__main__":
    go_over_to_venv()
    from pydlshogi.commands.policy_player_usi import main

    sys.exit(main())
