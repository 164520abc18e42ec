"""All tables of a server: new games from the wishes of the browser, and saved games."""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
import secrets
import threading
import time
from pathlib import Path
from typing import Any

from pydlshogi.analysis.record import GameRecord, parse_record, read_position
from pydlshogi.browser.choices import Choices, Player
from pydlshogi.browser.engines import Pool
from pydlshogi.browser.game import MOST_MOVES, BoardGame, Clock, GameError, read_state, restored
from pydlshogi.browser.table import THINK, Table
from pydlshogi.browser.thoughts import Thoughts
from pydlshogi.kifu.kif_text import handicap_sfen
from pydlshogi.match.referee import Verdict

#: The handicaps that are offered.
HANDICAPS = (
    *("香落ち", "右香落ち", "角落ち", "飛車落ち", "飛香落ち"),
    *("二枚落ち", "四枚落ち", "六枚落ち", "八枚落ち", "十枚落ち"),
)

#: Name of a game: the time of its start, and a random part.
_NAME = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}", re.ASCII)

#: Saved games in the list of the page, and the most seconds of a clock.
_LISTED, _MOST_SECONDS = 30, 86400.0

#: The longest text of a position, and the largest record in bytes: a move takes fewer than 50.
_LONGEST_SFEN, _LONGEST_RECORD = 20000, 100 * MOST_MOVES


class Hall:
    """The tables, and what they share: models and engines to choose from, and running engines.

    Games are saved in ``folder``, which is made if it is missing; that may raise OSError.
    """

    def __init__(self, choices: Choices, folder: Path, pool: Pool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.choices, self.folder, self.pool = choices, folder, pool
        self.thoughts = Thoughts(choices.models)
        self._tables: dict[str, Table] = {}
        self._lock = threading.Lock()

    def described(self) -> dict[str, Any]:
        """Returns what the page offers for a new game."""
        return {**self.choices.described(), "handicaps": HANDICAPS}

    def table(self, name: str) -> Table:
        """Returns a table by its name; a saved game gets one again. GameError: there is none."""
        with self._lock:
            if name not in self._tables:
                if not _NAME.fullmatch(name):
                    raise GameError("There is no such game.")
                try:
                    table = self._saved(name)
                except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
                    raise GameError("There is no such game, or its file is damaged.") from None
                self._tables[name] = table
            return self._tables[name]

    def _saved(self, name: str) -> Table:
        """Makes the table of a saved game; an unfinished game is paused."""
        state = read_state(self.folder / f"{name}.csa")
        game, players = restored(state), map(self.choices.restored, state["players"])
        return Table(name, game, [*players], float(state["think"]), self, paused=not game.result)

    def games(self) -> list[dict[str, Any]]:
        """Lists the newest saved games: ``name``, ``players``, ``moves`` and ``over``."""
        paths = (path for path in self.folder.glob("*.csa") if _NAME.fullmatch(path.stem))
        found = []
        for path in sorted(paths, reverse=True)[:_LISTED]:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                state = read_state(path)
                found.append(
                    {
                        "name": path.stem,
                        "players": state["names"],
                        "moves": len(state["moves"]),
                        "over": bool(state["result"]),
                    }
                )
        return found

    def new_table(self, wish: dict[str, Any]) -> Table:
        """Starts a game; nothing is started if a part of the wish is wrong, which raises UserError.

        A wish has ``start`` (:meth:`_start`), ``players``, ``clock`` with numbers of seconds or
        None, and ``think``. Without ``players``, the game is only shown. With ``exercise``, it is
        not saved.
        """
        game = self._start(wish.get("start") or {})
        chosen, think = self.players(wish) if "players" in wish else ([Player()] * 2, THINK)
        if "players" in wish:
            names = [self.choices.name(player) for player in chosen]
            game = BoardGame(game.start, tuple(game.moves), (names[0], names[1]), _clock(wish))
        game.settle()
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
        table = Table(name, game, chosen, think, self, is_saved=not wish.get("exercise"))
        with self._lock:
            self._tables[name] = table
        table.begin()
        return table

    def players(self, wish: dict[str, Any]) -> tuple[list[Player], float]:
        """Reads ``players`` and ``think`` of a wish; raises GameError."""
        players = wish.get("players")
        if not isinstance(players, list) or len(players) != 2:
            raise GameError("A game needs two players.")
        return [self.choices.player(player) for player in players], _number(wish, "think", THINK)

    def _start(self, wish: Any) -> BoardGame:
        """Sets up the start: one of the following, and ``ply``, its number of moves.

        ``handicap``: a name; ``sfen``: a position in USI notation; ``record``: a file in Base64,
        with ``file``, its name; ``game``: the name of a table. Without any, the even game.
        """
        if not isinstance(wish, dict):
            raise GameError("The start of the game is missing.")
        ply = wish.get("ply")
        if "handicap" in wish:
            if wish["handicap"] not in HANDICAPS:
                raise GameError("There is no such handicap.")
            return BoardGame(handicap_sfen(wish["handicap"]))
        if "sfen" in wish:
            return _game_of(read_position(str(wish["sfen"])[:_LONGEST_SFEN]), ply)
        if "record" in wish:
            name = Path(str(wish.get("file", ""))).name or "record"
            try:
                data = base64.b64decode(str(wish["record"]), validate=True)
            except (binascii.Error, ValueError):
                raise GameError("The record is damaged.") from None
            if len(data) > _LONGEST_RECORD:
                raise GameError(f"A record of more than {_LONGEST_RECORD} bytes is too large.")
            return _game_of(parse_record(name, data, needs_moves=False), ply)
        if "game" in wish:
            other = self.table(str(wish["game"]))
            with other.changed:
                start, moves = other.game.start, tuple(other.game.moves)
            return BoardGame(start, moves[: _ply(ply, len(moves))])
        return BoardGame()

    def close(self) -> None:
        """Ends all games' clocks and engines; the games stay in their files."""
        self.pool.close()
        for table in list(self._tables.values()):
            table.close()


def _ply(ply: Any, last: int) -> int:
    if ply is None:
        return last
    if type(ply) is not int or not 0 <= ply <= last:
        raise GameError("There is no such position.")
    return ply


def _game_of(record: GameRecord, ply: Any) -> BoardGame:
    """Makes a game of a record, whole or up to a move."""
    moves = tuple(move.usi() for move in record.moves)[: _ply(ply, len(record.moves))]
    game = BoardGame(record.start.sfen(), moves, record.names)
    game.seconds = record.seconds()[: len(moves)]
    if ply is None and (record.end_mark or record.is_drawn or record.winner is not None):
        mark = record.end_mark or ("%HIKIWAKE" if record.is_drawn else "%CHUDAN")
        game.result = Verdict(record.winner, mark, "the end of the record")
    return game


def _clock(wish: dict[str, Any]) -> Clock | None:
    clock = wish.get("clock")
    if not clock:
        return None
    times = [_number(clock, name, 0.0) for name in ("main", "byoyomi", "increment")]
    return Clock(*times) if any(times) else None


def _number(wish: Any, name: str, default: float) -> float:
    try:
        number = float(wish.get(name, default))
    except (TypeError, ValueError, AttributeError):
        raise GameError("A time is not a number.") from None
    if not 0 <= number <= _MOST_SECONDS:  # also if it is no number
        raise GameError(f"A time must be from 0 to {_MOST_SECONDS:.0f} seconds.")
    return number
