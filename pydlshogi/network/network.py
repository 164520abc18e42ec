"""What training and play may ask of any network."""

from __future__ import annotations

from pydlshogi.compat import chainer
from pydlshogi.network.value_kind import ValueKind


class Network(chainer.Chain):
    """A network from planes to logits and, where it has a value head, to values.

    ``network(planes)`` gives logits (batch, 2187); with a value head it gives the pair of
    logits and values (batch,). Both are ``chainer.Variable``.

    Attributes:
        value_kind: What the values mean; None for a network without a value head.
        ply: Whether it takes planes of the move number behind the others:
            ``make_input_planes(records, ply=network.ply)``.
    """

    value_kind: type[ValueKind] | None = None
    ply: bool = False
