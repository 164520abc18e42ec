"""The program play: a board in the browser, to play against models and engines."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import webbrowser
from collections.abc import Sequence

from pydlshogi.commands.arguments import (
    ArgumentParser,
    engine_spec,
    file_name,
    named_path,
    whole_number,
)
from pydlshogi.commands.program import program
from pydlshogi.files import games_folder


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="play",
        description="Opens a board in the browser: play against models and engines, let them play "
        "each other, and see what a network thinks. Each game is saved as it is played. "
        "Ctrl-C ends the program.",
    )
    add = parser.add_argument
    add(
        "--model",
        "-m",
        action="append",
        type=file_name,
        metavar="FILE",
        help="model file to play with; may be repeated (default: the shipped models, and those in "
        "the folder run of a clone)",
    )
    add(
        "--engine",
        action="append",
        default=[],
        type=engine_spec,
        metavar="NAME=COMMAND;OPTION=VALUE",
        help="USI engine to play with, as in match; may be repeated",
    )
    add(
        "--games",
        type=named_path,
        default=games_folder(),
        metavar="FOLDER",
        help="folder of the saved games (default: %(default)s)",
    )
    add(
        "--port",
        type=lambda text: whole_number(text, 0, 65535),
        default=0,
        metavar="N",
        help="port of the server, 0 for any free one (default: %(default)s)",
    )
    add(
        "--host",
        default="127.0.0.1",
        help="address of the server; another one opens the board to the network "
        "(default: %(default)s, this machine alone)",
    )
    add("--no_browser", action="store_true", help="do not open a browser; print the address only")
    return parser


@program("play")
def main(argv: Sequence[str] | None = None) -> int:
    """Serves the board until a signal ends the program."""
    args = build_parser().parse_args(argv)
    from pydlshogi.browser.choices import Choices, read_models
    from pydlshogi.browser.engines import Pool
    from pydlshogi.browser.hall import Hall
    from pydlshogi.browser.server import BoardServer

    choices = Choices(read_models(args.model or ()), args.engine)
    with BoardServer(Hall(choices, args.games, Pool()), args.host, args.port) as server:
        if not server.is_local():
            print(
                f"play: warning: --host {args.host} opens the board to the network. Everyone who "
                "learns the address can play, start the engines and read the games.",
                file=sys.stderr,
            )
        print(f"The games are saved in {args.games}. Ctrl-C ends the program. The board:")
        print(server.address, flush=True)
        if not args.no_browser:  # some commands of $BROWSER end only with the browser
            threading.Thread(target=_open, args=(server.local_address,), daemon=True).start()
        server.serve_forever()
    return 0


def _open(address: str) -> None:
    """Opens a browser, or says that there is none, or no display for it."""
    has_display = os.name == "nt" or sys.platform == "darwin"
    has_display = has_display or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    with contextlib.suppress(webbrowser.Error):
        # A browser of the terminal would hide the address.
        if has_display and webbrowser.open(address):
            return
    print("No browser could be started. Open this address yourself.", flush=True)
