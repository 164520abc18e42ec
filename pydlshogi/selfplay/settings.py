"""The parameters of self-play, and where their defaults come from."""

from __future__ import annotations

import dataclasses

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


@dataclasses.dataclass(frozen=True)
class SelfPlaySettings:
    """How the games are played.

    ``visits``, ``considered``, ``c_visit`` and ``c_scale`` are those of the Gumbel search: I.
    Danihelka et al., Policy improvement by planning with Gumbel, ICLR 2022. The sources of the
    defaults stand behind them.

    Attributes:
        visits: Visits below the root in a full search.
        considered: Moves that the root of a full search draws.
        cheap_visits: Visits and moves drawn in a cheap search, which gives no policy target.
        full_share: Share of the moves that have a full search.
        c_visit, c_scale: A move's value q weighs (c_visit + most visits) · c_scale · q.
        mate_plies: Longest mate searched at a leaf.
        max_plies: The game is drawn after so many plies.
        random_plies: Largest number of random moves at the start.
        kifu_list: Games whose first moves begin some of the games; empty for none.
        kifu_share: Share of the games that begin so.
        kifu_plies: Largest number of these moves.
        handicaps: Handicaps, a subset of :data:`HANDICAPS`.
        handicap_share: Share of the games with one of them.
        resign_below: A side whose value is below this for ``resign_moves`` of its moves resigns.
        resign_moves: See above; 0 for no resignation.
        play_on_share: Share of the games without resignation, which count the wrong ones.
    """

    visits: int = 32  # pgx's example
    considered: int = 16  # nshogi; the paper
    cheap_visits: int = 8  # nshogi: as many visits as moves
    full_share: float = 0.5  # 0.25 in nshogi and KataGo, whose full searches are longer
    c_visit: float = 50  # the paper
    c_scale: float = 1  # the paper
    mate_plies: int = 3  # nshogi
    max_plies: int = 320  # dlshogi
    random_plies: int = 4  # dlshogi
    kifu_list: str = ""
    kifu_share: float = 0.5
    kifu_plies: int = 40
    handicaps: tuple[str, ...] = tuple(HANDICAPS)
    handicap_share: float = 0.0
    resign_below: float = 0.03  # AobaZero: 0.1
    resign_moves: int = 3
    play_on_share: float = 0.1  # AobaZero

    def of_search(self) -> Settings:
        """Returns the settings of the tree below the root: the policy as it is."""
        return Settings(
            temperature=1.0,
            mate_plies=self.mate_plies,
            draw_ply=self.max_plies,
            root_mate=False,
            line_mate=False,
        )
