"""The constants of the search."""

from __future__ import annotations

import dataclasses

#: More plies than any game has.
_UNLIMITED = 10**6


@dataclasses.dataclass(frozen=True)
class Settings:
    """The parameters of a search. Values are probabilities of winning, 0 to 1.

    Attributes:
        c_init: First constant of PUCT (see :mod:`pydlshogi.uct.core`).
        c_base: Second constant of PUCT.
        c_init_root: ``c_init`` at the root.
        c_base_root: ``c_base`` at the root.
        fpu_reduction: An unvisited child is worth this much less than its parent, times the
            square root of the visited children's prior probability.
        fpu_reduction_root: The same at the root.
        temperature: Divides the policy's logits.
        batch_size: Largest number of positions in a batch.
        batches: Largest number of pending batches. With 2, the network computes one while the
            search collects the next.
        mate_plies: Longest mate searched at a leaf.
        root_mate: Whether to look for longer mates at the root.
        line_mate: Whether to look for longer mates along the best line.
        declaration: Whether the 27-point declaration wins.
        draw_black: Value of a draw for Black.
        draw_ply: The game is drawn after this many plies; 0 for no limit.
        occurrences: The occurrence of a position that counts as the end of the game in the
            tree: 2 in a game, 4 in an analysis.
        megabytes: Memory of the tree.

    Source of the default constants of PUCT and FPU: dlshogi, except ``c_init`` and
    ``c_init_root``. These are smaller, because they won a match of 400 games
    (benchmarks/RESULTS.md).
    """

    c_init: float = 0.9
    c_base: float = 28288
    c_init_root: float = 0.72
    c_base_root: float = 25617
    fpu_reduction: float = 0.27
    fpu_reduction_root: float = 0.0
    temperature: float = 1.4
    batch_size: int = 16
    batches: int = 1
    mate_plies: int = 5
    root_mate: bool = True
    line_mate: bool = True
    declaration: bool = True
    draw_black: float = 0.5
    draw_ply: int = 0
    occurrences: int = 2
    megabytes: int = 1024

    def draw_value(self, color: int) -> float:
        """Value of a draw for a side: 0 for Black, 1 for White."""
        return 1 - self.draw_black if color else self.draw_black

    def puct(self, is_root: bool) -> tuple[float, float, float]:
        """Constants of :func:`pydlshogi.uct.core.select` at the root or below it."""
        if is_root:
            return self.c_init_root, self.c_base_root, self.fpu_reduction_root
        return self.c_init, self.c_base, self.fpu_reduction

    def plies_left(self, ply: int) -> int:
        """Number of plies until the game is drawn by its length.

        Args:
            ply: Number of plies played.
        """
        return self.draw_ply - ply if self.draw_ply else _UNLIMITED

    def tree_bytes(self) -> float:
        """Memory of the tree."""
        return 1e6 * self.megabytes
