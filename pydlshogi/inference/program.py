"""The forward pass of a network in play, as a list of numpy operations.

A search asks for single boards and small batches. There, Chainer's forward pass spends most of its
time not on products. It transforms weights again, starts threads for every layer, and gets memory
from the system for every result. A program has constant weights. It prepares its operations and
their arrays once for each number of boards. It divides its work in one of two ways:

- Four boards or fewer: all threads compute each layer together, each some of its channels.
- More boards: each thread computes some of the boards through all layers. It waits for no
  other thread. The 3×3 convolutions run for a few boards at a time, so that their tiles stay in
  the cache. The layers after them run for all boards of the thread at once.

:mod:`pydlshogi.inference.compiler` makes the program of a network.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

import numpy

from pydlshogi.inference.steps import Call, Run, Step
from pydlshogi.layers.cpu.threads import Workspace, get_threads, in_threads, plan
from pydlshogi.layers.cpu.winograd import SIDE, TILES, VALUES

#: Largest number of boards whose layers the threads compute together.
_TOGETHER = 4

#: Largest number of boards in a chunk: its tiles fit into the cache.
_CHUNK = 4

#: Does a thread's part of a phase; takes the thread's number.
Phase = Callable[[int], None]

#: The arrays of the slots. Each thread has its own, so programs may run in several threads.
_workspace = Workspace()


class Slot(NamedTuple):
    """A slot of a convolution's output or of tiles, and the register, the memory that it uses.

    Slots that are not needed at the same time share a register.
    """

    number: int
    channels: int
    register: int


class Program:
    """The steps that compute a network, in order.

    ``planes`` is the slot of the input, ``outputs`` those of the outputs. Convolutions write
    ``values``; ``tiles`` are the slots of tiles.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        planes: int,
        outputs: Sequence[int],
        values: Sequence[Slot],
        tiles: Sequence[Slot],
    ) -> None:
        self._steps = steps
        # A fully connected layer reads all of its weights in each run, however few the boards.
        self._end: list[Call] = []
        for step in reversed(steps):
            if not isinstance(step, Call):
                break
            self._end.insert(0, step)
        self._body = steps[: len(steps) - len(self._end)]
        made = {call.target for call in self._end}
        read = set(outputs).union(*(call.sources() for call in self._end))
        self._kept = sorted(read - made - {planes})
        self._planes = planes
        self._outputs = outputs
        self._values = values
        self._tiles = tiles
        self._cache = _Cache()

    def __call__(self, planes: Any) -> list[Any]:
        """Computes the outputs (n, …) float32 of planes (n, channels, 9, 9), n at least 1."""
        threads = get_threads()
        if threads > 1 and len(planes) <= _TOGETHER:
            return self._run_together(planes, threads)
        return self._run_apart(planes)

    def _run_together(self, planes: Any, threads: int) -> list[Any]:
        """Runs each phase in all threads at once."""
        run, phases = self._prepared(len(planes), threads)
        run.values[self._planes] = planes
        in_threads(threads, *phases)
        return run.finish(self._outputs)

    def _run_apart(self, planes: Any) -> list[Any]:
        """Computes some of the boards in each thread."""
        chunks = plan(len(planes), 1, _CHUNK)
        found: dict[int, list[Any]] = {}

        def work(thread: int) -> None:
            parts = [self._run_body(planes[start:stop]) for start, stop in chunks[thread]]
            first, last = chunks[thread][0][0], chunks[thread][-1][1]
            found[first] = self._run_end(planes[first:last], parts)

        in_threads(len(chunks), work)
        parts = [found[start] for start in sorted(found)]
        return parts[0] if len(parts) == 1 else [numpy.concatenate(part) for part in zip(*parts)]

    def _run_body(self, planes: Any) -> list[Any]:
        """Runs all steps but the calls at the end; returns the values that are used later."""
        run, phases = self._prepared(len(planes), 1)
        run.values[self._planes] = planes
        for phase in phases:
            phase(0)
        return run.finish(self._kept)

    def _run_end(self, planes: Any, parts: list[list[Any]]) -> list[Any]:
        """Runs the calls at the end for several chunks; returns the outputs."""
        run = Run(len(planes))
        run.values[self._planes] = planes
        for slot, arrays in zip(self._kept, zip(*parts)):
            run.values[slot] = arrays[0] if len(arrays) == 1 else numpy.concatenate(arrays)
        for call in self._end:
            call(run)
        return run.finish(self._outputs)

    def _prepared(self, boards: int, threads: int) -> tuple[Run, list[Phase]]:
        """Returns the arrays and the phases for a number of boards; prepares them once.

        The threads share each phase. One thread runs the body only.
        """
        found = self._cache.prepared.get((boards, threads))
        if found is None:
            run = self._provide(boards)
            steps = self._body if threads == 1 else self._steps
            phases = [_phase(part, run, threads) for part in _phases(steps)]
            found = self._cache.prepared[boards, threads] = run, phases
        return found

    def _provide(self, n: int) -> Run:
        """Provides the arrays for n boards."""
        values, tiles = {}, {}
        for slot, channels, register in self._values:
            array = _workspace(f"value {register}", (SIDE, SIDE, n, channels))
            values[slot] = array.transpose(2, 3, 0, 1)
        for slot, channels, register in self._tiles:
            shape = (VALUES**2, TILES**2, n, channels)
            tiles[slot] = _workspace(f"tiles {register}", shape)
        return Run(n, values, tiles)


class _Cache(threading.local):
    """What a thread has prepared, by the numbers of boards and of threads."""

    def __init__(self) -> None:
        self.prepared: dict[tuple[int, int], tuple[Run, list[Phase]]] = {}


def _phase(steps: Sequence[Step], run: Run, threads: int) -> Phase:
    """Prepares a phase."""
    calls = [
        [call for step in steps for call in step.calls(run, thread, threads)]
        for thread in range(threads)
    ]

    def phase(thread: int) -> None:
        for call in calls[thread]:
            call()

    return phase


def _phases(steps: Sequence[Step]) -> list[list[Step]]:
    """Groups steps: within a phase, no thread needs the results of another thread."""
    phases: list[list[Step]] = []
    for step in steps:
        if phases and isinstance(step, Call) and isinstance(phases[-1][-1], Call):
            phases[-1].append(step)
        else:
            phases.append([step])
    return phases
