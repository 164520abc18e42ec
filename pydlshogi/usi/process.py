"""Runs an engine on standard input and output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable

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
) -> int:
    """Runs an engine until ``quit`` or the end of the input.

    Args:
        name: Name of the engine, for ``id name``.
        options: What the GUI can set; shared with the player.
        make_player: Makes the player, given the function that sends a line. Heavy imports
            belong inside it.

    Returns:
        Exit status 0. If the engine cannot go on (no model, no Chainer), the process ends
        at once with status 1.
    """
    with protocol_streams() as (lines, stream):
        log = DialogueLog()
        output = Output(stream, log)
        engine = Engine(name, AUTHOR, options, make_player, output, log, PROGRAM_FOLDER)
        if not engine.run(lines):
            # A thread is deep in an import or in CUDA. A normal end would wait for it.
            os._exit(0)
    return 0
