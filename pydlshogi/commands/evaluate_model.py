"""The program evaluate_model: how well a model foretells the moves of games, by phase."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pydlshogi.commands.program import program
from pydlshogi.commands.train_options import add_computation, positive_int

if TYPE_CHECKING:
    import numpy

#: How many of a network's first choices the move played is looked for in.
TOPS = (1, 3, 5)
#: First move number of each row of the table; moves count from 1.
PLY_RANGES = (1, 21, 41, 61, 81, 101, 121, 151)


class Row(NamedTuple):
    """How well the moves of a phase are foretold.

    Attributes:
        moves: Which moves of the game: ``1-20``, ``151-``, or ``all``.
        positions: How many there are.
        loss: Mean softmax cross entropy.
        accuracies: For each of :data:`TOPS`, the share of the positions whose move was
            among that many first choices.
    """

    moves: str
    positions: int
    loss: float
    accuracies: tuple[float, ...]


def build_parser() -> argparse.ArgumentParser:
    """Makes the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="evaluate_model",
        description="Measures a model on the games of a list: loss, and how often the move played "
        "was among its first choices, in all and by phase of the game. Prints a table.",
    )
    add = parser.add_argument
    add("model", help="model file of train_policy")
    add("kifulist", help="text file: the paths of the games, one a line")
    add("--tsv", action="store_true", help="tab-separated values in place of Markdown")
    add(
        "--batchsize",
        "-b",
        type=positive_int,
        default=512,
        metavar="N",
        help="positions in a batch (default: %(default)s)",
    )
    add_computation(parser)
    return parser


@program("evaluate_model", remedy="Lower --batchsize, or end other programs.")
def main(argv: Sequence[str] | None = None) -> int:
    """Evaluates as the command line says.

    Args:
        argv: The arguments; those of the process where it is None.

    Returns:
        Exit status: 0, or 1 with one sentence on standard error.
    """
    args = build_parser().parse_args(argv)
    # They import Chainer, so they come after the options have been found right.
    import numpy

    from pydlshogi.device import select_device
    from pydlshogi.kifu.loading import load_positions
    from pydlshogi.network.model_file import load_network
    from pydlshogi.training.run import ERRORS, choose_threads

    try:
        device = select_device(args.gpu)
        choose_threads(args.threads)
        network = load_network(args.model, args.convolution)
        network.to_device(device)
        games = load_positions(args.kifulist)
    except ERRORS as error:
        print(f"evaluate_model: error: {error}", file=sys.stderr)
        return 1
    games.report.print(args.kifulist)
    positions = games.positions
    with warnings.catch_warnings():
        # Told below, in a sentence; numpy.errstate would not reach the network's threads.
        warnings.filterwarnings("ignore", ".* encountered in ", RuntimeWarning)
        losses, ranks = measure(network, positions, device, args.batchsize)
    if not numpy.isfinite(losses).all():
        print(
            f"evaluate_model: error: model file {args.model} answers with numbers that are not "
            "finite: its training diverged. Choose another file.",
            file=sys.stderr,
        )
        return 1
    rows = summarize(positions["ply"], losses, ranks)
    print((format_tsv if args.tsv else format_markdown)(rows), end="")
    return 0


def measure(
    network: Any, positions: numpy.ndarray, device: Any, batch_size: int = 512
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Measures a network on each position.

    Args:
        network: A ``Network`` on ``device``.
        positions: (n,) array of ``POSITION``.
        device: The ``chainer.backend.Device`` to compute on.
        batch_size: Positions in a batch.

    Returns:
        (n,) float64 losses of the move played, softmax cross entropy over all labels; and
        (n,) int64 ranks of it among all labels, 0 for the network's first choice.
    """
    import numpy
    from tqdm import tqdm

    from pydlshogi.compat import chainer
    from pydlshogi.training.batches import PlanesConverter

    device.use()
    convert = PlanesConverter(positions, ply=network.ply)
    losses = numpy.empty(len(positions))
    ranks = numpy.empty(len(positions), numpy.int64)
    starts = tqdm(range(0, len(positions), batch_size), disable=not sys.stderr.isatty())
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        for start in starts:
            part = slice(start, min(start + batch_size, len(positions)))
            planes, labels, _ = convert(range(part.start, part.stop), device)
            logits = network(planes)
            if network.value_kind is not None:
                logits, _ = logits
            loss = chainer.functions.softmax_cross_entropy(logits, labels, reduce="no")
            played = logits.array[device.xp.arange(len(labels)), labels][:, None]
            # Of equal logits the first counts as the choice, as argmax has it.
            before = device.xp.arange(logits.shape[1]) < labels[:, None]
            ahead = (logits.array > played) | ((logits.array == played) & before)
            losses[part] = chainer.get_device("@numpy").send(loss.array)
            ranks[part] = chainer.get_device("@numpy").send(ahead.sum(axis=1))
    return losses, ranks


def summarize(ply: numpy.ndarray, losses: numpy.ndarray, ranks: numpy.ndarray) -> list[Row]:
    """Gathers what was measured by phase of the game.

    Args:
        ply: (n,) numbers of the moves, from 1.
        losses: (n,) as :func:`measure` returns them.
        ranks: (n,) as :func:`measure` returns them.

    Returns:
        A row a phase that has positions, by the ranges of ``PLY_RANGES``, and at
        the end one of all.
    """
    import numpy

    phases = {}
    for first, following in zip(PLY_RANGES, (*PLY_RANGES[1:], None)):
        name = f"{first}-" if following is None else f"{first}-{following - 1}"
        phases[name] = (ply >= first) & (following is None or ply < following)
    phases["all"] = numpy.ones(len(ply), bool)
    return [
        Row(
            name,
            int(inside.sum()),
            float(losses[inside].mean()),
            tuple(float((ranks[inside] < top).mean()) for top in TOPS),
        )
        for name, inside in phases.items()
        if inside.any()
    ]


def format_markdown(rows: Sequence[Row]) -> str:
    """Writes a table for people."""
    heads = ["moves", "positions", "loss", *(f"top {top}" for top in TOPS)]
    lines = [f"| {' | '.join(heads)} |", "|:--" + "|--:" * (len(heads) - 1) + "|"]
    for row in rows:
        accuracies = " | ".join(f"{accuracy:.4f}" for accuracy in row.accuracies)
        lines.append(f"| {row.moves} | {row.positions:,} | {row.loss:.4f} | {accuracies} |")
    return "\n".join(lines) + "\n"


def format_tsv(rows: Sequence[Row]) -> str:
    """Writes a table for programs: every figure as it is."""
    lines = [["moves", "positions", "loss", *(f"top_{top}" for top in TOPS)]]
    for row in rows:
        figures = (row.positions, row.loss, *row.accuracies)
        lines.append([row.moves, *(repr(figure) for figure in figures)])
    return "".join("\t".join(line) + "\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
