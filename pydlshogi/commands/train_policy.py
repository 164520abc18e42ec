"""The program train_policy: command line, log and exit status."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from pydlshogi.commands.program import out_of_memory, signal_of, terminable
from pydlshogi.commands.train_options import build_parser
from pydlshogi.files import next_to
from pydlshogi.training import log
from pydlshogi.training.outputs import OutputError, check_report, prepare_outputs, real_path

logger = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Trains the policy network as the command line says.

    Args:
        argv: The arguments; those of the process where it is None.

    Returns:
        Exit status: 0 when the run is done; 1 when it cannot go on, with one sentence on
        standard error; 128 and the signal's number when it was interrupted.

    Raises:
        SystemExit: status 2, by argparse: a value or an option that does not exist.
    """
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.resume and not args.initmodel:
        parser.error("--resume needs the model of that run: give it as --initmodel")
    try:
        from pydlshogi.kifu.cache import cache_path

        lists = {"kifulist_train": args.kifulist_train, "kifulist_test": args.kifulist_test}
        caches = {
            f"the cache of {name}": str(cache_path(path))
            for name, path in lists.items()
            if os.path.basename(path)  # else it is no file, as its reader will say
        }
        # A run may go on in the files it starts from, and destroy them in no other way; where
        # only one of the two goes on in place, run keeps a copy.
        starts = {
            name: path
            for name, path, output in (
                ("--initmodel", args.initmodel, args.model),
                ("--resume", args.resume, args.state),
            )
            if path and real_path(path) != real_path(output)
        }
        check_report(args.report)
        prepare_outputs(
            {
                "--model": args.model,
                "--model's new file": str(next_to(args.model)),
                "--state": args.state,
                "--log": args.log,
                "--report": args.report,
            },
            {**lists, **caches, **starts},
        )
        with log.log_to(args.log), terminable():
            return _run(args)
    except KeyboardInterrupt as interrupt:
        return 128 + signal_of(interrupt)
    except (OutputError, OSError) as error:
        print(f"train_policy: error: {error}", file=sys.stderr)
        return 1


def _run(args: argparse.Namespace) -> int:
    """Runs with the log open: what a user can cause becomes one sentence of it."""
    # It imports Chainer, so it comes after the options have been found right.
    from pydlshogi.training.run import ERRORS, run

    try:
        signal_number = run(args)
    except KeyboardInterrupt as interrupt:
        logger.warning("interrupted; what was saved last stands")
        signal_number = signal_of(interrupt)
    except MemoryError as error:
        logger.error("%s", out_of_memory(error))
        return 1
    except ERRORS as error:
        logger.error("%s", error)
        return 1
    return 128 + signal_number if signal_number else 0


if __name__ == "__main__":
    sys.exit(main())
