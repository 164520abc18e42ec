"""The parameters of self-play and of the loop, and where their defaults come from.

The metadata of a field is what the option of ``self_play`` needs, as in
:mod:`pydlshogi.training.recipe`. This module imports nothing heavy.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, Callable

from pydlshogi.errors import UserError
from pydlshogi.files import write_beside
from pydlshogi.training.recipe import VISITS, Recipe
from pydlshogi.uct.settings import Settings

#: Handicaps by name: White, who lacks the pieces, moves first.
HANDICAPS = {
    "lance": "lnsgkgsn1/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "bishop": "lnsgkgsnl/1r7/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "rook": "lnsgkgsnl/7b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "rook_lance": "lnsgkgsn1/7b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "two": "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "four": "1nsgkgsn1/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "six": "2sgkgs2/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
}


class ConfigError(UserError):
    """The configuration cannot be used."""


def _option(default: Any, range: str, metavar: str, help: str) -> Any:
    """Declares a parameter that is also an option."""
    help = f"{help} (default: %(default)s)"
    metadata = {"help": help, "range": range, "metavar": metavar, "group": "", "short": ""}
    return dataclasses.field(default=default, metadata=metadata)


def _number(default: int, help: str, least: int = 1) -> Any:
    return _option(default, "positive_int" if least else "non_negative_int", "N", help)


def _share(default: float, help: str) -> Any:
    return _option(default, "proportion", "SHARE", help)


def _limited(default: Any, range: str) -> Any:
    """Declares a parameter of the loop alone."""
    return dataclasses.field(default=default, metadata={"range": range})


_WEIGHT = "weight of the values at the root"


@dataclasses.dataclass(frozen=True)
class SelfPlaySettings:
    """How the games are played. The sources of the defaults stand behind them.

    ``visits``, ``considered``, ``c_visit`` and ``c_scale`` are those of the Gumbel search: I.
    Danihelka et al., Policy improvement by planning with Gumbel, ICLR 2022. A move's value q weighs
    (c_visit + most visits) · c_scale · q.

    Attributes:
        kifu_list: Games whose first moves begin some of the games; empty for none.
        handicaps: Handicaps, a subset of :data:`HANDICAPS`.
    """

    visits: int = _number(32, "visits of a full search")  # pgx's example
    considered: int = _number(16, "moves that a full search draws at the root")  # nshogi; the paper
    # nshogi: as many visits as moves
    cheap_visits: int = _number(8, "visits and moves of a cheap search, which gives no target")
    # 0.25 in nshogi and KataGo, whose full searches are longer
    full_share: float = _share(0.5, "share of the moves with a full search")
    c_visit: float = _option(50.0, "positive_number", "X", _WEIGHT)  # the paper
    c_scale: float = _option(1.0, "positive_number", "X", _WEIGHT)  # the paper
    mate_plies: int = _number(3, "longest mate searched at each leaf", 0)  # nshogi
    max_plies: int = _number(320, "a game of N moves is drawn")  # dlshogi
    random_plies: int = _number(4, "largest number of random moves at the start", 0)  # dlshogi
    kifu_list: str = ""
    kifu_share: float = _share(0.5, "share of the games that begin with moves of the list")
    kifu_plies: int = _number(40, "largest number of these moves")
    handicaps: tuple[str, ...] = tuple(HANDICAPS)
    handicap_share: float = _share(0.0, "share of the games with a handicap")
    # AobaZero: 0.1
    resign_below: float = _option(
        0.03, "proportion", "P", "a side with a smaller probability of winning resigns"
    )
    resign_moves: int = _number(3, "so many of its moves in a row; 0: nobody resigns", 0)
    # AobaZero
    play_on_share: float = _share(
        0.1, "share of the games without resignation, which count the wrong ones"
    )

    def of_search(self) -> Settings:
        """Returns the settings of the tree below the root: the policy as it is."""
        return Settings(
            temperature=1.0,
            mate_plies=self.mate_plies,
            draw_ply=self.max_plies,
            root_mate=False,
            line_mate=False,
        )


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
        match_games: Largest number of games of the match, even.
        match_share: Largest share of the visits of a cycle that are those of the match.
        take_at: Share of the points with which the new network becomes the best one.
        self_play: How the games are played, and with how many visits in the match.
        recipe: How the networks are trained.
    """

    seed: int = _limited(0, "seed_number")
    games: int = _limited(500, "positive_int")  # KataGo
    batch: int = _limited(64, "positive_int")
    # KataGo: 100,000, for larger networks
    least_rows: int = _limited(20_000, "positive_int")
    window: float = _limited(0.5, "proportion")
    most_uses: int = _limited(8, "positive_int")  # KataGo
    fading: float = _limited(0.3, "proportion")
    batchsize: int = _limited(128, "positive_int")
    match_games: int = _limited(200, "positive_int")  # KataGo
    match_share: float = _limited(0.2, "share")
    take_at: float = _limited(0.5, "proportion")  # leela-zero: 0.55 wasted progress
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

    def games_of_match(self) -> int:
        """Returns the number of games of the match. All its searches are full ones."""
        play = self.self_play
        full = play.full_share + (1 - play.full_share) * play.cheap_visits / play.visits
        most = self.games * full * self.match_share / (1 - self.match_share)
        return max(2, min(self.match_games, 2 * int(most / 2)))


def load_settings(path: Path, given: Path | None, wrong: Callable[[Any], str]) -> LoopSettings:
    """Reads the configuration of a loop from ``path``, or writes it there with the defaults.

    The content of a file ``given`` becomes that of ``path``. ``wrong`` names a value out of its
    range, in a sentence. Raises ConfigError if a file cannot be read, or has an unknown name or a
    wrong value.
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
    if settings.match_games % 2:
        raise ConfigError(f"{source}: match_games must be even.")
    if not all(name in [*HANDICAPS] for name in settings.self_play.handicaps):
        raise ConfigError(f"{source}: the names of self_play.handicaps are {', '.join(HANDICAPS)}.")
    if sentence := wrong(settings):
        raise ConfigError(f"{source}: {sentence}")
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
