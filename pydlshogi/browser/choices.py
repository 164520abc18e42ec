"""The players that the browser may choose, by number: it never names a file or a command."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydlshogi import launch
from pydlshogi.browser.game import GameError
from pydlshogi.errors import UserError
from pydlshogi.files import shipped_model
from pydlshogi.match.engine_spec import THIS_PYTHON, EngineSpec
from pydlshogi.player.engine_options import FULL_LEVEL, POLICY_LEVEL

HUMAN, ENGINE = "human", "engine"
#: Our players, the strongest first.
PLAYERS = ("mcts_player", "search1_player", "policy_player")

#: Memory of a search in megabytes: several engines may run beside each other.
_HASH = "256"


class Player(NamedTuple):
    """A side of a game: ``kind`` is ``human``, ``engine``, or the name of one of our players.

    ``number`` is that of the engine or of our player's model, ``level`` that of ``mcts_player``.
    """

    kind: str = HUMAN
    number: int = 0
    level: int = FULL_LEVEL


class Model(NamedTuple):
    """A model file with the name that the browser shows, and the heads that it has."""

    path: Path
    name: str
    has_policy: bool
    has_value: bool

    def players(self) -> list[str]:
        """Lists which of our players can play it; without a value, the search plays the policy."""
        able = {
            "mcts_player": self.has_policy,
            "search1_player": self.has_value,
            "policy_player": self.has_policy,
        }
        return [player for player in PLAYERS if able[player]]

    def highest_level(self) -> int:
        """Returns the highest level of ``mcts_player``."""
        return FULL_LEVEL if self.has_value else POLICY_LEVEL


def read_models(paths: Sequence[str | os.PathLike[str]]) -> list[Model]:
    """Reads the models of the command line; without any, the shipped ones and those of ``run/``.

    Raises:
        UserError: A named model cannot be used, or there is none.
    """
    if paths:
        return [_model(Path(path)) for path in paths]
    models = []
    for path in _usual_models():
        with contextlib.suppress(UserError):  # a run may have been interrupted while it saved
            models.append(_model(path))
    if not models:
        raise UserError("no model was found. Train one, or name the file of one.")
    return models


def _usual_models() -> Iterable[Path]:
    yield shipped_model("model_policy_value")
    yield shipped_model("model_policy")
    for name in ("model", "model_*[a-z]", "best"):
        yield from sorted(Path(launch.ROOT, "run").glob(f"*/{name}"))


def _model(path: Path) -> Model:
    from pydlshogi.model_files.model_file import load_network

    network = load_network(path)
    path = path.absolute()
    folder = path.parent.name
    name = path.name if folder in ("", "model") else f"{folder}/{path.name}"
    return Model(path, name, network.has_policy, network.value_kind is not None)


class Choices:
    """The models and engines of the command line."""

    def __init__(self, models: Sequence[Model], engines: Sequence[EngineSpec] = ()) -> None:
        self.models, self.engines = models, engines

    def described(self) -> dict[str, Any]:
        """Returns what the browser shows of the choices."""
        models = [
            {
                "name": model.name,
                "value": model.has_value,
                "policy": model.has_policy,
                "players": model.players(),
                "levels": model.highest_level(),
            }
            for model in self.models
        ]
        return {"models": models, "engines": [engine.name for engine in self.engines]}

    def player(self, wanted: Any) -> Player:
        """Reads the choice of the browser: an object with the names of :class:`Player`.

        GameError: there is no such player.
        """
        try:
            player = Player(**wanted)
        except TypeError:
            raise GameError("A player is missing.") from None
        if player.kind == HUMAN:
            return Player()
        if type(player.number) is not int or type(player.level) is not int:
            raise GameError("The number of a player is not a number.")
        if not 0 <= player.number < len(self._names(player.kind)):
            raise GameError("There is no such player.")
        if player.kind == ENGINE:
            return player._replace(level=FULL_LEVEL)
        model = self.models[player.number]
        if player.kind not in model.players():
            raise GameError("There is no such player.")
        if player.kind != "mcts_player":
            return player._replace(level=FULL_LEVEL)
        return player._replace(level=min(max(player.level, 1), model.highest_level()))

    def name(self, player: Player) -> str:
        """Names a player in records; empty for a person."""
        if player.kind == HUMAN:
            return ""
        if player.kind == ENGINE:
            return self.engines[player.number].name
        level = f" level {player.level}" if player.level < FULL_LEVEL else ""
        return f"{player.kind} {self.models[player.number].name}{level}"

    def spec(self, player: Player) -> EngineSpec:
        """Says how to start the engine of a player."""
        if player.kind == ENGINE:
            return self.engines[player.number]
        model = self.models[player.number]
        command = (THIS_PYTHON, "-m", "pydlshogi", f"{player.kind}_usi", "--model", str(model.path))
        options = [("USI_Hash", _HASH)] if player.kind == "mcts_player" else []
        if player.level < FULL_LEVEL:
            options.append(("Level", str(player.level)))
        return EngineSpec(model.name, command, tuple(options))

    def saved(self, player: Player) -> list[Any]:
        """Returns what finds a player again, even if other models are named then."""
        names = self._names(player.kind)
        return [player.kind, names[player.number] if names else "", player.level]

    def _names(self, kind: str) -> list[str]:
        """Names the engines or the models that a kind of players has."""
        if kind == ENGINE:
            return [engine.name for engine in self.engines]
        return [] if kind == HUMAN else [model.name for model in self.models]

    def restored(self, saved: Sequence[Any]) -> Player:
        """Returns a saved player; a person if its engine or its model is not offered now."""
        kind, name, level = saved
        names = self._names(kind)
        with contextlib.suppress(GameError, ValueError):
            return self.player({"kind": kind, "number": names.index(name), "level": level})
        return Player()
