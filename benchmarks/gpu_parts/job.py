"""What the run is asked to do, and what a part may use of it."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from gpu_parts.process import Ended, run
from gpu_parts.table import Row
from pydlshogi.errors import UserError
from pydlshogi.launch import python_path
from pydlshogi.outputs import keep_earlier

#: Folder of the clone: the parts run its scripts and tests.
ROOT = Path(__file__).resolve().parents[2]


class PartError(UserError):
    """A part failed; the text says why."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What the run is asked to do: the options of the same names.

    Attributes:
        gpu: Number of the GPU. -1 rehearses all parts on the CPU, with tiny bounds.
        minutes: Time limit of all parts together.
        epoch: Most epochs of a training.
        output: Folder of all results, absolute.
        kifulist_train: List of the training games, absolute.
        kifulist_test: List of the test games, absolute.
        torch_python: A Python with PyTorch, for the benchmark; empty for none.
    """

    gpu: int
    minutes: float
    epoch: int
    output: Path
    kifulist_train: Path
    kifulist_test: Path
    torch_python: str = ""

    @property
    def is_rehearsal(self) -> bool:
        """Whether the parts run on the CPU, to see that they work."""
        return self.gpu < 0

    @property
    def child_gpu(self) -> int:
        """The number of the GPU in the child processes, which see no other GPU."""
        return min(self.gpu, 0)

    @property
    def device(self) -> str:
        """The value of an engine's option ``device``."""
        return "cpu" if self.is_rehearsal else "gpu0"

    def environment(self) -> dict[str, str]:
        """Makes the environment variables of the child processes."""
        variables = {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
        variables["PYTHONPATH"] = python_path()
        if not self.is_rehearsal:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
            seen = visible[self.gpu] if any(visible) else str(self.gpu)
            variables["CUDA_VISIBLE_DEVICES"] = seen
        return {**os.environ, **variables}


class Job:
    """A part that runs.

    Args:
        name: Name of the part.
        request: What the run is asked to do.
        seconds: Time limit of the part.

    Attributes:
        rows: The results so far.
    """

    def __init__(self, name: str, request: Request, seconds: float) -> None:
        self.name = name
        self.request = request
        self.rows: list[Row] = []
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds left to the part."""
        return max(0.0, self._end - time.monotonic())

    def add(self, item: str, result: str) -> None:
        """Adds a result, and prints it."""
        row = Row(self.name, item, result)
        self.rows.append(row)
        print(f"  {item}: {result}", flush=True)

    def run(
        self,
        label: str,
        *command: str | Path,
        share: float = 1.0,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> Ended:
        """Runs a Python command in the folder of the clone.

        Args:
            label: Name of the log file, ``NAME-label.txt`` in the folder ``logs``.
            command: Arguments of Python.
            share: Share of the time left that the command may take.
            variables: More environment variables of the command.
        """
        name = "-".join(filter(None, (self.name, label)))
        log = self.request.output / "logs" / f"{name}.txt"
        return run(
            [sys.executable, *map(str, command)],
            self.left * share,
            log,
            folder=ROOT,
            environment={**self.request.environment(), **variables},
        )

    def must(
        self,
        label: str,
        *command: str | Path,
        share: float = 1.0,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> list[str]:
        """Runs a command as :meth:`run` and returns its output.

        Raises:
            PartError: it failed or took too long.
        """
        ended = self.run(label, *command, share=share, variables=variables)
        if ended.status != 0:
            raise PartError(f"{label or self.name}: {ended.reason}")
        return ended.lines


def keep(*paths: Path) -> None:
    """Makes room for files that a part will write: an existing file becomes ``PATH.old``.

    Raises:
        OutputError: a file cannot be kept.
        OSError: a file cannot be removed.
    """
    for path in paths:
        copy = keep_earlier(os.fspath(path))
        if copy:
            print(f"  {path} exists already; it is kept as {copy}", flush=True)
            path.unlink()


def pairs(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Returns the lines ``item<TAB>text`` of an output; other lines are ignored."""
    cells = (line.split("\t") for line in lines)
    return [(row[0], row[1]) for row in cells if len(row) == 2]
