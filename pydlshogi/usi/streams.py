"""Standard input and output, reserved for the protocol."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def protocol_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Opens standard input and output for the protocol alone.

    Yields:
        The lines of the GUI, and the stream for the answers.
    """
    _open_standard_files()
    with _input_for_protocol() as lines, _output_for_protocol() as stream:
        yield lines, stream


def _open_standard_files() -> None:
    """Opens standard input, output and error if the GUI has not.

    Otherwise the next opened file would take the number of the missing one.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


@contextlib.contextmanager
def _input_for_protocol() -> Iterator[BinaryIO]:
    """Reserves standard input. Everyone else finds it empty.

    On Windows a call about a pipe waits while another thread reads the pipe. Libraries
    make such calls about standard input when they are imported: numpy would wait for the
    GUI's next line, and the GUI for ``readyok``.
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
    """Reserves standard output.

    What libraries print meanwhile, from Python or from C, goes to standard error.
    """
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
