"""Shogi networks and players in Chainer, from game records to a USI engine.

The functions of this module are the library: :func:`load`, :func:`read`, :func:`show` and
:func:`play` (docs/library.md). Importing the package imports nothing heavy: they import what they
need when they are called. This file runs on every Python from 2.7 on (see launch.py).
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pydlshogi import library  # noqa: F401 (named in the comments on types)

__all__ = ["load", "play", "read", "show"]
__version__ = "1.0.0"


def load(model=None, gpu=None, network=None):
    # type: (library.Path | None, int | None, str | None) -> library.Model
    """Loads a model file of any network; without a name, the one that the engines play.

    Args:
        gpu: Number of the GPU, -1 for the CPU; None: a GPU if there is one.
        network: ``FILE.py:CLASS`` of your own network, if the model holds one.

    Raises:
        UserError: The file is no model, or the device cannot be used.
    """
    from pydlshogi import library

    return library.load(model, gpu, network)


def read(path, number=1):
    # type: (library.Path, int) -> library.Game
    """Reads game ``number``, from 1, of a CSA, KIF or KI2 file.

    Raises:
        UserError: The file cannot be read, or a move is impossible.
    """
    from pydlshogi import library

    return library.read(path, number)


def show(position, opinion=None, arrows=5, language="en"):
    # type: (library.AnyPosition, library.Opinion | None, int, str) -> library.Picture
    """Draws a position, with the arrows and the value of an opinion if there is one.

    Args:
        position: An SFEN, ``startpos moves …``, a board of python-shogi, or a part of a game.
        arrows: Most arrows.
        language: Language of the words: ``en`` or ``ja``.

    Returns:
        A picture: a notebook shows it, and its method ``save`` writes a file.

    Raises:
        UserError: The position is impossible.
    """
    from pydlshogi import library

    return library.show(position, opinion, arrows, language)


def play(model=None, port=0, height=760):
    # type: (library.Path | list[library.Path] | None, int, int) -> library.Board
    """Opens the board in a notebook's cell, or in the browser.

    Args:
        model: Model file, or a list of them; None: the shipped ones, and those in ``run``.
        port: Port of the server; 0 for any free one.
        height: Height of the cell's frame in pixels.

    Raises:
        UserError: A model or the port cannot be used.
    """
    from pydlshogi import library

    return library.play(model, port, height)
