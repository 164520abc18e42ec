"""Several processes that train one network: the ranks of an MPI job.

Each rank has the whole network and takes its share of every batch. The ranks exchange the
gradients, the counts of positions, the statistics of batch normalization, and signals. Each
update is then the update that one process would make, apart from rounding:

- The loss of a rank is weighted so that the ranks together have the loss of the batch.
- The gradients of the ranks are merged before the optimizer sees them.
- Rank 0 reads the records, logs and saves. It sends its weights and its seed to the others.

ChainerMN and mpi4py transport the data. A process that no mpiexec started imports neither.

Source: T. Akiba et al., ChainerMN: Scalable Distributed Deep Learning Framework,
arXiv:1710.11351 (2017).
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, Callable, TypeVar

import numpy

from pydlshogi.errors import UserError

_Result = TypeVar("_Result")

# Bytes that are broadcast at a time; MPI counts with 32 bits.
_PART = 1 << 28

# Gradients with fewer numbers are sent together: each message has its latency.
_LARGE = 1 << 14

# Seconds that the first rank has to report an error that all ranks find.
_PATIENCE = 1.5

# Seconds that mpiexec has to print the messages of a rank before it ends all.
_FORWARDING = 0.5


class ParallelError(UserError):
    """The ranks cannot train together."""


class FirstRankFailed(Exception):
    """Rank 0 failed and reports it; this rank ends in silence.

    Attributes:
        status: Exit status of all ranks.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"rank 0 failed with status {status}")
        self.status = status


class Ranks:
    """The processes that train together, and the place of this one.

    Args:
        communicator: A communicator of ChainerMN; None for one process, which is rank 0 of 1.
        on_gpu: Whether each rank computes on a GPU.

    Attributes:
        local_rank, local_size: Number of this process on its host, and how many are there.
        idle: Whether the last :meth:`share` was empty.
        in_step: Whether every rank ends without help. Otherwise one that fails must end
            the others.
    """

    rank = local_rank = 0
    size = local_size = 1

    def __init__(self, communicator: Any = None, on_gpu: bool = False) -> None:
        self.idle = False
        self.in_step = communicator is None
        self._on_gpu = on_gpu
        self._communicator = communicator
        if communicator is not None:
            self._mpi = communicator.mpi_comm
            self.rank, self.size = communicator.rank, communicator.size
            self.local_rank, self.local_size = communicator.intra_rank, communicator.intra_size

    @property
    def is_first(self) -> bool:
        """Whether this process reads, logs and saves."""
        return self.rank == 0

    def part(self, batch: Any) -> Any:
        """Returns this rank's part of a batch; may be empty."""
        n = len(batch)
        return batch[n * self.rank // self.size : n * (self.rank + 1) // self.size]

    def share(self, batch: Any) -> Any:
        """Returns this rank's part of a batch, at least one item, and sets ``idle``."""
        mine = self.part(batch)
        self.idle = not len(mine)
        # No network and no library has to compute an empty batch.
        return batch[:1] if self.idle else mine

    def gather(self, numbers: Any) -> numpy.ndarray:
        """Collects an array of each rank: (size, …) float64, in the order of the ranks."""
        mine = numpy.ascontiguousarray(numbers, numpy.float64)
        if self.size == 1:
            return mine[None]
        all_ = numpy.empty((self.size, *mine.shape), numpy.float64)
        self._mpi.Allgather(mine, all_)
        return all_

    def weigh(self, counts: Mapping[str, Any]) -> Mapping[str, float]:
        """Computes the weights of this rank's mean losses from their numbers of positions.

        With them :meth:`merge_gradients` gives the gradients of the mean over the whole batch.
        An idle rank has the weight 0.
        """
        mine = numpy.array([0 if self.idle else int(count) for count in counts.values()])
        whole = self.gather(mine).sum(axis=0)
        # On GPUs, ChainerMN computes means of gradients.
        factor = self.size if self._on_gpu else 1
        weights = factor * mine / numpy.maximum(whole, 1)
        return dict(zip(counts, weights.tolist()))

    def means(self, measured: Mapping[str, Any]) -> Mapping[str, Any]:
        """Merges the (mean, number) pairs of all ranks to those of the whole batch.

        Those of several ranks are on the CPU, as numbers of numpy. A mean over no position is 0,
        with the number 0. Chainer divides such numbers of numpy without an error: the result is
        nan.
        """
        if self.size == 1:
            return measured
        local = [(float(mean), float(number)) for mean, number in measured.values()]
        mine = numpy.array(local).reshape(-1, 2)
        # A mean over no position may be nan.
        mine[(mine[:, 1] == 0) | self.idle] = 0
        means, numbers = numpy.moveaxis(self.gather(mine), -1, 0)
        whole = numbers.sum(axis=0)
        merged = (means * numbers).sum(axis=0) / numpy.maximum(whole, 1)
        # The state file keeps the numbers as integers.
        return dict(zip(measured, zip(merged, whole.astype(numpy.int64))))

    def batch_size(self, share: int) -> int:
        """Returns the number of positions in the batch whose share has ``share``."""
        return int(self.gather(0 if self.idle else share).sum())

    def highest(self, number: int) -> int:
        """Returns the largest number that a rank has."""
        return int(self.gather(number).max())

    def on_first(self, function: Callable[[], _Result]) -> _Result:
        """Calls a function on rank 0 and returns its result on all, which is pickled.

        Raises:
            FirstRankFailed: this is another rank, and the function has raised an error.
        """
        if self.size == 1:
            return function()
        if self.rank:
            status, result = self._mpi.bcast(None)
            if status:
                self.in_step = True
                raise FirstRankFailed(status)
            return result
        try:
            result = function()
        except BaseException as error:
            self._mpi.bcast((_status(error), None))
            self.in_step = True
            raise
        self._mpi.bcast((0, result))
        return result

    def broadcast_array(self, array: numpy.ndarray | None) -> numpy.ndarray:
        """Sends an array of rank 0 to the others, which pass None; without a pickle."""
        if self.size == 1:
            assert array is not None
            return array
        form = None if array is None else (array.shape, array.dtype)
        shape, dtype = self._mpi.bcast(form)
        sent = numpy.empty(shape, dtype) if array is None else numpy.ascontiguousarray(array)
        content = sent.reshape(-1).view(numpy.uint8)
        for start in range(0, len(content), _PART):
            self._mpi.Bcast(content[start : start + _PART])
        return sent

    def merge_gradients(self, optimizer: Any) -> None:
        """Replaces the gradients by those of the whole batch; a hook of the optimizer.

        On the CPU the gradients are added where they are. A second array would cost several
        times as much: the system has to provide its memory.
        """
        if self._on_gpu:
            self._communicator.multi_node_mean_grad(optimizer.target)
            return
        parameters = [parameter for _, parameter in sorted(optimizer.target.namedparams())]
        gradients = [p.grad for p in parameters if p.grad is not None]
        for gradient in gradients:
            if gradient.size >= _LARGE:
                self._add(gradient)
        small = [gradient for gradient in gradients if gradient.size < _LARGE]
        if small:
            packed = numpy.concatenate([gradient.reshape(-1) for gradient in small])
            self._add(packed)
            ends = numpy.cumsum([gradient.size for gradient in small])
            for gradient, total in zip(small, numpy.split(packed, ends)):
                gradient[...] = total.reshape(gradient.shape)

    def _add(self, array: numpy.ndarray) -> None:
        """Replaces an array by its sum over the ranks."""
        from mpi4py import MPI

        # MPI would read an array of another memory order in the wrong order.
        total = numpy.ascontiguousarray(array)
        self._mpi.Allreduce(MPI.IN_PLACE, total)
        if total is not array:
            array[...] = total

    def gpu(self, gpu: int | None) -> int | None:
        """Returns this rank's GPU; ``gpu`` is the first one that the ranks of a host may use.

        A GPU that the user named stays, even if there is none: ``select_device`` refuses it.
        """
        if self.size == 1:
            return gpu
        if not self._on_gpu and (gpu is None or gpu < 0):
            return -1
        return (gpu or 0) + self.local_rank

    @contextlib.contextmanager
    def after_first(self) -> Iterator[None]:
        """Delays an error of a block, so that the first rank reports an error of all, once."""
        try:
            yield
        except FirstRankFailed:
            raise
        except BaseException:
            if self.rank and not self.in_step:
                time.sleep(_PATIENCE)
            raise

    def threads(self, allowed: int) -> int:
        """Divides the processors that this process may use among the ranks that share them.

        Ranks that MPI binds to different processors share none.
        """
        if self.size == 1:
            return allowed
        bound_to = getattr(os, "sched_getaffinity", lambda process: ())(0)
        mine = socket.gethostname(), sorted(bound_to)
        return max(1, allowed // self._mpi.allgather(mine).count(mine))

    def abort(self, status: int, message: str = "") -> None:
        """Prints a message and ends all ranks at once, unless they all end by themselves."""
        if self.in_step:
            return
        print(message, end="", file=sys.__stderr__, flush=True)
        time.sleep(_FORWARDING)
        self._mpi.Abort(status)
        # Abort may return before this process is killed. It would then report its error again.
        os._exit(status)


#: The ranks of a process that mpiexec did not start.
ALONE = Ranks()

# The ranks that this process has joined.
_joined = ALONE


def synchronize(network: Any, ranks: Ranks) -> None:
    """Makes batch normalization take the statistics of the batches of all ranks."""
    from pydlshogi.layers.batch_normalization import BatchNormalization

    for link in network.links():
        if isinstance(link, BatchNormalization):
            link.ranks = ranks if ranks.size > 1 else None


def join(communicator: str | None = None, gpu: int | None = None) -> Ranks:
    """Joins the ranks that mpiexec started; ``ALONE`` in a process that it did not start.

    Args:
        communicator: Name of a communicator of ChainerMN; None for ``pure_nccl`` on GPUs and
            ``naive`` on CPUs.

    Raises:
        ParallelError: MPI is missing, mpiexec is of another MPI than mpi4py uses, or
            ``communicator`` has no use.
    """
    _, size = launched()
    if size == 1:
        if communicator is not None:
            raise ParallelError(
                f"the communicator {communicator} is for several processes, and this is one. "
                "Start the program with mpiexec, or name no communicator."
            )
        return ALONE
    world = _world(size)
    from pydlshogi.compat import chainer  # noqa: F401 - ChainerMN imports Chainer
    from pydlshogi.device import gpu_count

    on_gpu = (gpu is None or gpu >= 0) and gpu_count()[0] > 0
    name = communicator or ("pure_nccl" if on_gpu else "naive")
    names = world.allgather(name)
    if len(set(names)) > 1:
        raise ParallelError(
            f"rank 0 would use the communicator {names[0]}, and another rank would not: some "
            "hosts have a GPU and some have none. Choose GPU -1, or other hosts."
        )
    if name != "naive" and not on_gpu:
        raise ParallelError(
            f"the communicator {name} is for GPUs, and there is none. Name no communicator."
        )
    global _joined
    _joined = Ranks(_create(name, world), on_gpu)
    return _joined


def _world(size: int) -> Any:
    """Returns MPI's communicator of all ranks, if it has as many as mpiexec started."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: no MPI library
        reason = str(error).partition("\n")[0]
        raise ParallelError(
            f"mpiexec started {size} processes, but MPI cannot be used ({reason}). "
            "Install it: python -m pip install mpi4py mpich (on Windows impi-rt in place of mpich)."
        ) from None
    world = MPI.COMM_WORLD
    if world.size != size:
        library = MPI.Get_library_version().partition("\n")[0].strip(" \0")
        raise ParallelError(
            f"mpiexec started {size} processes, but mpi4py sees {world.size}: it uses another "
            f"MPI ({library}). Start the program with the mpiexec of that MPI."
        )
    return world


def _create(name: str, world: Any) -> Any:
    """Makes a communicator of ChainerMN."""
    import chainermn

    # With CuPy 14 the kernels of the batched copy do not compile.
    options = {"batched_copy": False} if name == "pure_nccl" else {}
    try:
        return chainermn.create_communicator(name, mpi_comm=world, **options)
    except (ImportError, RuntimeError, ValueError) as error:
        raise ParallelError(
            f"the communicator {name} cannot be used ({error}). Choose another communicator."
        ) from None


def _status(error: BaseException) -> int:
    """Returns the exit status of a program that ends with an error."""
    if isinstance(error, KeyboardInterrupt):
        return 128 + int(getattr(error, "signal_number", 2))
    return int(getattr(error, "status", 1))


# What launchers tell a process: MPICH, Intel MPI and MS-MPI; Open MPI; srun.
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


def launched() -> tuple[int, int]:
    """Returns the rank and the number of ranks that mpiexec or srun tell; (0, 1) without."""
    size = _number(_SIZES)
    return (_number(_RANKS) or 0, size) if size and size > 1 else (0, 1)


def _number(names: tuple[str, ...]) -> int | None:
    """Returns the first of some environment variables that is a number."""
    found = (os.environ.get(name, "") for name in names)
    return next((int(text) for text in found if text.isdecimal()), None)


@contextlib.contextmanager
def first_speaks() -> Iterator[None]:
    """Silences the other ranks until they have joined, because all of them find the same errors."""
    if launched()[0] == 0:
        yield
        return
    with contextlib.ExitStack() as silence:
        nothing = silence.enter_context(
            open(os.devnull, "w", encoding="utf-8", errors="backslashreplace")
        )
        silence.enter_context(contextlib.redirect_stdout(nothing))
        silence.enter_context(contextlib.redirect_stderr(nothing))
        yield


def end_together(program: Callable[[], int]) -> int:
    """Runs a program, which returns its exit status, and ends all ranks if it fails."""
    try:
        status = program()
    except SystemExit as error:
        _joined.abort(1, f"rank {launched()[0]} ended with status {error.code}\n")
        raise
    except BaseException:
        _joined.abort(1, traceback.format_exc())
        raise
    if status:
        _joined.abort(status)
    return status
