"""What a training program is asked to do."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

from pydlshogi.training.trainer import Settings


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of a training program, under the same names.

    Attributes:
        kifulist_train: List of the training games.
        kifulist_test: List of the test games.
        settings: What the run has to do; its seed is used if ``seed`` is given.
        network: Name of the network.
        sizes: Sizes of the network by name (``registry.sizes_of``). Missing ones are those of
            ``initmodel``, or the network's defaults.
        initmodel: Model file to start from; empty for new weights.
        resume: State file to resume; empty for a new run.
        gpu: Number of the GPU, negative for the CPU; None for a GPU if there is one.
        seed: The seed; None for a random one.
        strict: Whether to leave out games with illegal moves.
        drop_duplicates: Whether to leave out games with the moves of an earlier game.
        report: File for the table of the records left out; empty for none.
    """

    kifulist_train: str
    kifulist_test: str
    settings: Settings
    network: str
    sizes: Mapping[str, int] = dataclasses.field(default_factory=dict)
    initmodel: str = ""
    resume: str = ""
    gpu: int | None = None
    seed: int | None = None
    strict: bool = False
    drop_duplicates: bool = False
    report: str = ""

    def with_seed(self) -> Options:
        """Returns the same options with a seed in the settings: the given or a random one."""
        seed = int.from_bytes(os.urandom(4), "little") if self.seed is None else self.seed
        return dataclasses.replace(self, settings=dataclasses.replace(self.settings, seed=seed))
