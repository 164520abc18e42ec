"""The constants of the search."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a search computes with. Values are probabilities of winning, 0 to 1.

    Attributes:
        c_init: First constant of PUCT (see :mod:`pydlshogi.uct.selection`).
        c_base: Second constant of PUCT.
        c_init_root: ``c_init`` at the root.
        c_base_root: ``c_base`` at the root.
        fpu_reduction: How much less an unvisited child is worth than its parent, times the
            square root of the visited children's prior probability.
        fpu_reduction_root: The same at the root.
        temperature: Divides the policy's logits.
        batch_size: Most positions of a batch.
        batches: Most pending batches: with 2, a GPU computes while the next one is collected.
        mate_plies: Longest mate searched at a leaf.
        root_mate: Whether to look for longer mates at the root.
        declaration: Whether the 27-point declaration wins.
        draw_black: Value of a draw for Black.
        draw_ply: The game is drawn after this many plies; 0 for no limit.
        occurrences: The occurrence of a position in the tree that counts as the end of the
            game: 2 in a game, 4 in an analysis.
        megabytes: Memory of the tree and the cache.

    Source of the first six values: dlshogi.
    """

    c_init: float = 1.44
    c_base: float = 28288
    c_init_root: float = 1.16
    c_base_root: float = 25617
    fpu_reduction: float = 0.27
    fpu_reduction_root: float = 0.0
    temperature: float = 1.4
    batch_size: int = 16
    batches: int = 1
    mate_plies: int = 5
    root_mate: bool = True
    declaration: bool = True
    draw_black: float = 0.5
    draw_ply: int = 0
    occurrences: int = 2
    megabytes: int = 1024

    def draw_value(self, color: int) -> float:
        """Value of a draw for a side: 0 for Black, 1 for White."""
        return 1 - self.draw_black if color else self.draw_black
