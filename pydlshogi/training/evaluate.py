"""Evaluation of a network on the positions of games, in all and by phase of the game."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from pydlshogi.bar import bar
from pydlshogi.compat import chainer
from pydlshogi.errors import UserError
from pydlshogi.network.network import split_output
from pydlshogi.positions import UNKNOWN
from pydlshogi.training.batches import PlanesConverter

#: Ranks that count as a hit: the move played is among the network's 1, 3 or 5 first moves.
TOPS = (1, 3, 5)

#: First move number of each phase of the game; moves count from 1.
PHASES = (1, 21, 41, 61, 81, 101, 121, 151)


class EvaluationError(UserError):
    """The model gives numbers that are not finite."""


class Measured(NamedTuple):
    """The results of a network for each position; None for a head that it lacks.

    Attributes:
        losses: (n,) float64 softmax cross entropy of the move played.
        ranks: (n,) int64 rank of the move played among all labels, from 0.
        value_losses: (n,) float64 loss of the result, nan where it is unknown.
        winners: (n,) float64: 1 if the winner was predicted, 0 if not, nan if nobody won.
        wins: (n,) float64 predicted probability that the side to move wins.
    """

    losses: numpy.ndarray | None
    ranks: numpy.ndarray | None
    value_losses: numpy.ndarray | None
    winners: numpy.ndarray | None
    wins: numpy.ndarray | None = None


class Row(NamedTuple):
    """The means of a phase of the game; nan without a known result, None without the head.

    Attributes:
        moves: Move numbers of the phase: ``1-20``, ``151-``, or ``all``.
        accuracies: For each of :data:`TOPS` the share of positions with a hit; empty
            without a policy head.
        value_accuracy: Share of the won and lost games whose winner was predicted.
    """

    moves: str
    positions: int
    loss: float | None
    accuracies: tuple[float, ...]
    value_loss: float | None = None
    value_accuracy: float | None = None


def measure_finite(
    network: Any, positions: numpy.ndarray, device: Any, batch_size: int = 512
) -> Measured:
    """Moves a network to a device, and measures it as :func:`measure` does.

    Raises:
        EvaluationError: the network gives numbers that are not finite.
    """
    network.to_device(device)
    with warnings.catch_warnings():
        # Reported below. numpy.errstate would not reach the threads of the network.
        warnings.filterwarnings("ignore", ".* encountered in ", RuntimeWarning)
        measured = measure(network, positions, device, batch_size)
    known = positions["result"] != UNKNOWN
    for losses in (measured.losses, _at(measured.value_losses, known)):
        if losses is not None and not numpy.isfinite(losses).all():
            raise EvaluationError(
                "the network gives numbers that are not finite: its training diverged. "
                "Choose another model file."
            )
    return measured


def _at(values: numpy.ndarray | None, mask: numpy.ndarray) -> numpy.ndarray | None:
    return None if values is None else values[mask]


def measure(network: Any, positions: numpy.ndarray, device: Any, batch_size: int = 512) -> Measured:
    """Measures a ``Network`` on ``device`` on each position, with a progress bar on a terminal."""
    device.use()
    convert = PlanesConverter(positions, plane_num=network.plane_num)
    batches = []
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        for start in bar(range(0, len(positions), batch_size)):
            batch = range(start, min(start + batch_size, len(positions)))
            batches.append(_measure_batch(network, *convert(batch, device)))
    return Measured(*(None if parts[0] is None else _join(parts) for parts in zip(*batches)))


def _measure_batch(network: Any, planes: Any, labels: Any, wins: Any) -> Measured:
    policy, values = split_output(network, network(planes))
    losses = ranks = value_losses = winners = predicted = None
    if policy is not None:
        losses = chainer.functions.softmax_cross_entropy(policy, labels, reduce="no").array
        ranks = _ranks(policy.array, labels)
    if values is not None:
        value_losses = network.value_kind.losses(values, wins).array
        predicted = network.value_kind.win_probabilities(values)
        right = (predicted > 0.5) == (wins > 0.5)
        winners = right.astype(numpy.float64)
        winners[(wins != 0) & (wins != 1)] = numpy.nan
    return Measured(losses, ranks, value_losses, winners, predicted)


def _ranks(logits: Any, labels: Any) -> Any:
    """Counts the labels that come before the move played: (batch,) int64."""
    xp = chainer.backend.get_array_module(logits)
    played = logits[xp.arange(len(labels)), labels][:, None]
    # Of equal logits the first label comes first, as in argmax.
    before = xp.arange(logits.shape[1]) < labels[:, None]
    return ((logits > played) | ((logits == played) & before)).sum(axis=1)


def _join(parts: Sequence[Any]) -> numpy.ndarray:
    """Joins the results of the batches on the CPU; floats become float64."""
    joined = numpy.concatenate([chainer.get_device("@numpy").send(part) for part in parts])
    return joined.astype(numpy.float64) if joined.dtype.kind == "f" else joined


def summarize(ply: numpy.ndarray, measured: Measured) -> list[Row]:
    """Computes the means over each of :data:`PHASES` that has positions, then over all.

    Args:
        ply: (n,) numbers of the moves, from 1.
    """
    phases = {}
    for first, following in zip(PHASES, (*PHASES[1:], None)):
        name = f"{first}-" if following is None else f"{first}-{following - 1}"
        phases[name] = (ply >= first) & (following is None or ply < following)
    phases["all"] = numpy.ones(len(ply), bool)
    return [_row(name, inside, measured) for name, inside in phases.items() if inside.any()]


def _row(name: str, inside: numpy.ndarray, measured: Measured) -> Row:
    losses, ranks, value_losses, winners, _ = (_at(values, inside) for values in measured)
    return Row(
        name,
        int(inside.sum()),
        None if losses is None else float(losses.mean()),
        () if ranks is None else tuple(float((ranks < top).mean()) for top in TOPS),
        None if value_losses is None else _mean_of_known(value_losses),
        None if winners is None else _mean_of_known(winners),
    )


def _mean_of_known(values: numpy.ndarray) -> float:
    """Computes the mean of the values that are not nan; nan if there is none."""
    known = values[~numpy.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def as_table(rows: Sequence[Row]) -> tuple[list[str], list[list[Any]]]:
    """Returns the titles and the cells of a table; heads that are missing have no columns."""
    has_policy, has_value = rows[0].loss is not None, rows[0].value_loss is not None
    titles = ["moves", "positions"]
    titles += ["loss", *(f"top {top}" for top in TOPS)] if has_policy else []
    titles += ["value loss", "value accuracy"] if has_value else []
    cells = [
        [row.moves, row.positions]
        + ([row.loss, *row.accuracies] if has_policy else [])
        + ([row.value_loss, row.value_accuracy] if has_value else [])
        for row in rows
    ]
    return titles, cells
