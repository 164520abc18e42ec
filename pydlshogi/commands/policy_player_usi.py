"""The program ``policy_player_usi``: a USI engine that plays the policy network's moves."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Callable

import pydlshogi
from pydlshogi.player.policy_options import policy_options
from pydlshogi.usi.engine import Engine
from pydlshogi.usi.protocol import DialogueLog, Output

if TYPE_CHECKING:
    from pydlshogi.player.base_player import BasePlayer
    from pydlshogi.usi.options import Options

#: Where relative paths in options start: the folder of ``policy_player_usi.py`` in a
#: clone. Never the current folder, which a GUI chooses.
PROGRAM_FOLDER = Path(pydlshogi.__file__).resolve().parent.parent


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the engine on standard input and output.

    Args:
        argv: Arguments; None for those of the command line.

    Returns:
        Exit status 0 after ``quit`` or the end of the input. Where the engine cannot
        go on (no model, no chainer) the process ends at once with status 1.
    """
    _build_parser().parse_args(argv)
    options = policy_options()
    _open_standard_files()
    with _input_for_protocol() as lines, _stdout_for_protocol() as stream:
        log = DialogueLog()
        output = Output(stream, log)
        make_player = _player_maker(options)
        engine = Engine(
            "policy_player", "pydlshogi", options, make_player, output, log, PROGRAM_FOLDER
        )
        if not engine.run(lines):
            # A thread is deep in an import or in CUDA: an orderly end would wait for it.
            os._exit(0)
    return 0


def _build_parser() -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog="policy_player_usi",
        description="Shogi engine for USI GUIs (ShogiGUI, Shogidokoro, ShogiHome): register it "
        "there. It reads USI commands from standard input; everything is set by USI options.",
    )


def _player_maker(options: Options) -> Callable[[Callable[[str], None]], BasePlayer]:
    """Gives a function that makes the player, importing chainer only then."""

    def make_player(send: Callable[[str], None]) -> BasePlayer:
        from pydlshogi.player.policy_player import PolicyPlayer

        return PolicyPlayer(options, send, PROGRAM_FOLDER)

    return make_player


def _open_standard_files() -> None:
    """Opens what a GUI has started us without: standard input, output or error.

    Else the next file that is opened would take its number, and its content with it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free


@contextlib.contextmanager
def _input_for_protocol() -> Iterator[BinaryIO]:
    """Keeps standard input for the protocol alone; everyone else finds it empty.

    On Windows a call about a pipe waits for another thread's reading of it, and libraries
    make such calls about standard input when they are loaded: numpy would wait for the
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
def _stdout_for_protocol() -> Iterator[BinaryIO]:
    """Keeps standard output for the protocol alone.

    What libraries print, from Python or from C, goes to standard error meanwhile.
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


if __name__ == "__main__":
    sys.exit(main())
