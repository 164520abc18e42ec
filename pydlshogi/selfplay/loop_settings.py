"""The configuration file of the loop: its names, defaults and checks."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from pydlshogi.errors import UserError
from pydlshogi.files import write_beside
from pydlshogi.selfplay.settings import SelfPlaySettings
from pydlshogi.training.recipe import VISITS, Recipe


class ConfigError(UserError):
    """The configuration cannot be used."""


@dataclasses.dataclass(frozen=True)
class LoopSettings:
    """The parameters of the loop; the sources of the defaults stand behind them.

    Attributes:
        seed: Of the games, the openings and the trainings.
        games: Games of a cycle.
        batch: Games at once.
        least_rows: A training begins only with so many positions in the window.
        window: The window has this share of all positions, but at least ``least_rows``.
        most_uses: Largest number of trainings that use a position.
        fading: Probability that a training uses the oldest positions of the window. It rises to
            1 for the newest ones.
        batchsize: Positions in a training batch.
        match_games: Games of the match, even.
        match_share: Largest share of the cycle's time for the match.
        take_at: Share of the points with which the new network becomes the best one.
        self_play: How the games are played, and with how many visits in the match.
        recipe: How the networks are trained.
    """

    seed: int = 0
    games: int = 500  # KataGo
    batch: int = 64
    least_rows: int = 20_000  # KataGo: 100,000, for larger networks
    window: float = 0.5
    most_uses: int = 8  # KataGo
    fading: float = 0.3
    batchsize: int = 128
    match_games: int = 200  # KataGo
    match_share: float = 0.2
    take_at: float = 0.5  # leela-zero: 0.55 wasted progress
    self_play: SelfPlaySettings = SelfPlaySettings()
    recipe: Recipe = Recipe(
        lr=0.01,
        momentum=0.9,
        nesterov=True,
        weight_decay=1e-4,
        warmup=50,
        mirror=True,
        policy_target=VISITS,
        value_lambda=0.7,
        eval_scale=600.0,  # that of the evaluations in the files
    )


def load_settings(path: Path, given: Path | None) -> LoopSettings:
    """Reads the configuration of a loop, or writes it with the defaults.

    Args:
        path: The file in the folder of the loop.
        given: A file whose content becomes that of ``path``; None for the one that is there.

    Raises:
        ConfigError: a file cannot be read, or has an unknown name or a value of another kind.
    """
    source = given or path
    values: Any = {}
    if given or path.exists():
        try:
            values = json.loads(source.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(f"{source} cannot be read ({reason}). Repair it.") from None
    settings: LoopSettings = _updated(LoopSettings(), values, source, "")
    if settings.match_games % 2 or settings.games < 1 or settings.batch < 1:
        raise ConfigError(f"{source}: games and batch are at least 1, and match_games is even.")
    if given or not path.exists():
        with write_beside(path) as file:
            text = json.dumps(dataclasses.asdict(settings), indent=2, ensure_ascii=False)
            file.write(text.encode() + b"\n")
    return settings


def _updated(settings: Any, values: Any, source: Path, before: str) -> Any:
    """Replaces the defaults of a dataclass by the values of a JSON object."""
    if not isinstance(values, dict):
        raise ConfigError(f"{source}: {before or 'the file'} is not an object of names and values.")
    known = {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)}
    changes = {}
    for name, value in values.items():
        if name not in known:
            raise ConfigError(
                f"{source} has the unknown name {before}{name}. The names are {', '.join(known)}."
            )
        default = known[name]
        if dataclasses.is_dataclass(default):
            value = _updated(default, value, source, f"{name}.")
        elif isinstance(default, tuple) and isinstance(value, list):
            value = tuple(value)
        elif isinstance(default, float) and isinstance(value, int) and value is not True:
            value = float(value)
        if default is not None and type(value) is not type(default):
            raise ConfigError(
                f"{source}: {before}{name} is {json.dumps(value, default=str)}. It must be of the "
                f"kind of its default, {json.dumps(default)}."
            )
        changes[name] = value
    return dataclasses.replace(settings, **changes)
