"""The training program behind train_policy, train_value and the other names."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

from pydlshogi.commands.model_options import apply_computation
from pydlshogi.commands.program import Reported, program, report_to
from pydlshogi.commands.train_options import (
    TRAIN_PROGRAMS,
    build_parser,
    chosen_network,
    options_of,
)
from pydlshogi.errors import UserError
from pydlshogi.training.parallel import (
    FirstRankFailed,
    Ranks,
    end_together,
    first_speaks,
    join,
)

logger = logging.getLogger(__name__)

_ON_WINDOWS = os.name == "nt"

_REMEDY = "Lower --batchsize or --test_batchsize, or end other programs."


def training_program(name: str) -> Callable[..., int]:
    """Makes the ``main`` of a training program, a key of ``TRAIN_PROGRAMS``.

    It returns 0 if the run is finished; 1 if it cannot start or continue, with one sentence on
    standard error; 128 plus the number of the signal if it was interrupted.
    """

    @program(name, remedy=_REMEDY)
    def train(argv: Sequence[str] | None) -> int:
        args = build_parser(TRAIN_PROGRAMS[name]).parse_args(argv)
        ranks = join(args.communicator, args.gpu)
        try:
            with contextlib.ExitStack() as outputs:
                ranks.on_first(lambda: _open_outputs(args, outputs))
                if not ranks.is_first:
                    outputs.enter_context(_log_of(ranks))
                outputs.enter_context(report_to(logger, remedy=_REMEDY, interrupted=_INTERRUPTED))
                with ranks.after_first():
                    _train(args, ranks)
        except FirstRankFailed as failure:  # which has reported it
            raise Reported(failure.status) from None
        print(_written(args))
        return 0

    def main(argv: Sequence[str] | None = None) -> int:
        with first_speaks():
            return end_together(lambda: train(argv))

    return main


def _written(args: argparse.Namespace) -> str:
    """Names the files of a finished run, in one line."""
    files = {"model": args.model, "state": args.state, "log": args.log, "report": args.report}
    return "; ".join(f"{path}: {name}" for name, path in files.items() if path)


_INTERRUPTED = "What was saved before stays as it was."


def _open_outputs(args: argparse.Namespace, outputs: contextlib.ExitStack) -> None:
    """Checks and locks the output files, and opens the log."""
    from pydlshogi.lock import lock_outputs
    from pydlshogi.training.log_file import log_to

    log = _prepare_files(args)
    outputs.enter_context(lock_outputs(args.model, args.state, log))
    outputs.enter_context(log_to(args.log))


@contextlib.contextmanager
def _log_of(ranks: Ranks) -> Iterator[None]:
    """Prints the errors of a rank that is not the first; the first one logs all else."""
    handler = logging.StreamHandler(sys.__stderr__)
    handler.setLevel(logging.ERROR)
    handler.setFormatter(logging.Formatter(f"rank {ranks.rank}: %(message)s"))
    package = logging.getLogger("pydlshogi")
    package.addHandler(handler)
    try:
        yield
    finally:
        package.removeHandler(handler)


def _train(args: argparse.Namespace, ranks: Ranks) -> None:
    """Trains with the log open, so that errors are logged."""
    # These modules import Chainer; a wrong command line has been reported before.
    from pydlshogi.layers.cpu.threads import get_threads
    from pydlshogi.processors import THREADS_VARIABLE
    from pydlshogi.training.checkpoint import FirstSaveError, SaveError
    from pydlshogi.training.end import Interruption
    from pydlshogi.training.run import CONTINUE, continues, run

    # All ranks take part in this division, although the options of some may not need it.
    share = ranks.threads(args.threads or get_threads())
    if ranks.size > 1 and args.threads is None and not os.environ.get(THREADS_VARIABLE):
        args.threads = share
    apply_computation(args)
    args.network = chosen_network(args)
    options, interruption = options_of(args), Interruption(speaks=ranks.is_first)
    try:
        signal_number = run(options, ranks, interruption)
    except SaveError as error:
        if isinstance(error, FirstSaveError) and not continues(options):
            raise  # the files, if there are any, belong to an earlier run
        files = _files(args)
        raise SaveError(f"{str(error).rstrip('.')} and continue with {files}.") from None
    ranks.in_step = True
    if interruption.left:
        command = os.environ.get(CONTINUE)  # of make and train.bat
        added = f"{_files(args)}{_left(args, *interruption.left)}"
        how = f"run: {command}" if command else f"add {added} to the same command"
        logger.warning("to continue, %s", how)
    if signal_number:
        raise Reported(128 + signal_number)


def _files(args: argparse.Namespace) -> str:
    """Formats the options that resume a run from its files."""
    return f"--initmodel {_quoted(args.model)} --resume {_quoted(args.state)}"


def _quoted(path: str) -> str:
    """Quotes a path for the shell of the system; cmd.exe knows double quotes only."""
    return subprocess.list2cmdline([path]) if _ON_WINDOWS else shlex.quote(path)


def _left(args: argparse.Namespace, epochs: int, iterations: int | None) -> str:
    """Formats the options that must change: those of the epochs and iterations left."""
    options = f" --epoch {epochs}" if epochs != args.epoch else ""
    return options + (f" --iterations {iterations}" if iterations != args.iterations else "")


def _prepare_files(args: argparse.Namespace) -> str:
    """Checks that no output replaces an input, and makes the folders of the outputs.

    Returns:
        The log; empty if it is a device or a pipe, which can receive the lines of many runs.
    """
    from pydlshogi.files import next_to
    from pydlshogi.kifu.cache import with_caches
    from pydlshogi.outputs import check_log, check_model, check_report, prepare_outputs, real_path
    from pydlshogi.training.log_file import is_stream

    if args.initmodel and args.resume and real_path(args.initmodel) == real_path(args.resume):
        raise UserError(
            f"--initmodel and --resume are the same file, {args.resume}. Give --resume the state "
            "file that was saved with the model."
        )
    lists = {"kifulist_train": args.kifulist_train, "kifulist_test": args.kifulist_test}
    check_model("--model", args.model)
    check_model("--state", args.state)
    check_report(args.report)
    log = "" if is_stream(args.log) else args.log
    check_log(log)
    prepare_outputs(
        {
            "--model": args.model,
            "--model's new file": str(next_to(args.model)),
            "--state": args.state,
            "--log": log,
            "--report": args.report,
        },
        {**with_caches(lists), **_start_files(args)},
    )
    return log


def _start_files(args: argparse.Namespace) -> dict[str, str]:
    """Returns the files to start from that the run must not overwrite.

    A run may continue in the files it starts from. If it continues only one of the two,
    ``run`` copies the other one before.
    """
    from pydlshogi.outputs import real_path

    return {
        name: path
        for name, path, output in (
            ("--initmodel", args.initmodel, args.model),
            ("--resume", args.resume, args.state),
        )
        if path and real_path(path) != real_path(output)
    }
