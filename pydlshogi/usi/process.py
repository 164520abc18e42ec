"""Runs an engine on standard input and output."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Callable, NoReturn

import pydlshogi
from pydlshogi.usi.dialogue_log import DialogueLog
from pydlshogi.usi.engine import Engine
from pydlshogi.usi.options import Options
from pydlshogi.usi.output import Output
from pydlshogi.usi.player import Player
from pydlshogi.usi.streams import protocol_streams

#: Relative paths in options start here: the root of a clone. The GUI chooses the current
#: folder, so that one is of no use.
PROGRAM_FOLDER = Path(pydlshogi.__file__).resolve().parent.parent

AUTHOR = "pydlshogi"


def run_engine(
    name: str, options: Options, make_player: Callable[[Callable[[str], None]], Player]
) -> NoReturn:
    """Runs an engine until ``quit`` or the end of the input, and ends the process.

    The exit status is 0.

    Args:
        name: Name of the engine, for ``id name``.
        options: What the GUI can set; shared with the player.
        make_player: Makes the player, given the function that sends a line. Heavy imports
            belong inside it.

    Raises:
        UserError: the engine cannot go on, for example without a model. ``program`` turns
            this and other errors into the exit status 1.
    """
    with protocol_streams() as (lines, stream):
        log = DialogueLog()
        output = Output(stream, log)
        engine = Engine(name, AUTHOR, options, make_player, output, log, PROGRAM_FOLDER)
        engine.run(lines)
        # Standard error may be closed, or nobody may read it any more.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            sys.stderr.flush()
        # A normal exit would wait for all threads: an import, CUDA, a batch of the network. Then
        # it would free the tree node by node.
        os._exit(0)
