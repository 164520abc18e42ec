"""What a search tells the GUI."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydlshogi.player.strategy import score
from pydlshogi.uct.line import Line
from pydlshogi.uct.move import to_usi
from pydlshogi.uct.proof import DRAW, WIN, Proof
from pydlshogi.uct.search import Search


def info_lines(
    search: Search, lines: Sequence[Line], *, seconds: float, nodes: int, has_value: bool
) -> Iterator[str]:
    """Writes the ``info`` lines of a search, the first last: GUIs take the last score.

    Args:
        search: The search.
        lines: What to show, ``multipv 1`` first.
        seconds: Time since ``go``.
        nodes: Visits since ``go``.
        has_value: Whether the network has a value head; without one there is no score.
    """
    seldepth = max([search.deepest, *(len(line.moves) for line in lines)])
    common = (
        f"seldepth {seldepth} "
        f"time {round(1000 * seconds)} nodes {nodes} nps {round(nodes / max(seconds, 1e-3))} "
        f"hashfull {min(1000, int(1000 * search.fullness()))}"
    )
    for rank in range(len(lines), 0, -1):
        line = lines[rank - 1]
        words = f" score {score_words(line)}" if has_value or line.proof else ""
        pv = " ".join(map(to_usi, line.moves))
        yield f"info depth {len(line.moves)} {common} multipv {rank}{words} pv {pv}"


def score_words(line: Line) -> str:
    """Writes the score of a line: ``cp N``, or ``mate N`` where the end is proven."""
    proof: Proof | None = line.proof
    if proof is None or proof.outcome == DRAW:
        return f"cp {score(line.value)}"
    return f"mate {proof.plies}" if proof.outcome == WIN else f"mate -{proof.plies}"
