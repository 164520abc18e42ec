"""Runs an engine on standard input and output, which are reserved for the protocol."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Callable, NoReturn

import pydlshogi
from pydlshogi.usi.engine import Engine, Player
from pydlshogi.usi.options import Options
from pydlshogi.usi.output import DialogueLog, Output

#: Relative paths in options start here: the root of a clone. The GUI chooses the current
#: folder, so that one is of no use.
PROGRAM_FOLDER = Path(pydlshogi.__file__).resolve().parent.parent

AUTHOR = "pydlshogi"


def run_engine(
    name: str, options: Options, make_player: Callable[[Callable[[str], None]], Player]
) -> NoReturn:
    """Runs an engine until ``quit`` or the end of the input, and ends the process with status 0.

    The arguments are those of :class:`Engine`. A UserError means that the engine cannot go on,
    for example without a model; ``program`` turns it into the status 1.
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


@contextlib.contextmanager
def protocol_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Opens standard input and output for the protocol alone, and yields both."""
    _open_standard_files()
    with _input_for_protocol() as lines, _output_for_protocol() as stream:
        yield lines, stream


def _open_standard_files() -> None:
    """Opens standard input, output and error if the GUI has not: files would take their numbers."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


@contextlib.contextmanager
def _input_for_protocol() -> Iterator[BinaryIO]:
    """Reserves standard input. Everyone else finds it empty.

    On Windows a call about a pipe waits while another thread reads it. Libraries make such calls
    when they are imported: numpy would wait for the GUI's next line, the GUI for ``readyok``.
    """
    own = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        with os.fdopen(os.dup(own), "rb") as stream:
            yield stream
    finally:
        os.dup2(own, 0)
        os.close(own)


@contextlib.contextmanager
def _output_for_protocol() -> Iterator[BinaryIO]:
    """Reserves standard output. What libraries print meanwhile goes to standard error."""
    own = os.dup(1)
    os.dup2(2, 1)
    stream = os.fdopen(os.dup(own), "wb")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield stream
    finally:
        with contextlib.suppress(OSError):  # the GUI is gone, and a line is left over
            stream.close()
        os.dup2(own, 1)
        os.close(own)
