"""The base class of the networks: what training and play may use of any network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.errors import UserError
from pydlshogi.features import LABEL_NUM, PLANE_NUM
from pydlshogi.network.value_kind import ValueKind


class OutputsError(UserError):
    """A user's network returns other outputs than its attributes say."""


class Network(chainer.Chain):
    """A network with a policy head, a value head, or both.

    ``network(planes)`` takes (batch, plane_num, 9, 9) float32, in numpy or cupy like the
    parameters. It returns one ``chainer.Variable``, or a pair of them:

    - policy head only: logits (batch, 2187), in the order of the labels;
    - value head only: values (batch, 1);
    - both heads: (logits, values).
    """

    #: Number of planes of the input: 104, or 106 with the last two moves.
    plane_num: int = PLANE_NUM
    has_policy: bool = True
    #: What the values mean; None without a value head.
    value_kind: type[ValueKind] | None = None
    #: Name of the linear link that computes the values, for ``convert_model calibrate``.
    value_output: str = ""
    #: Names of the links of the value head; empty if they cannot be trained alone. A network with
    #: them has the methods ``trunk``, from the planes to the input of the heads, and ``value``.
    value_head: tuple[str, ...] = ()

    @classmethod
    def sizes_in(cls, arrays: Mapping[str, Any]) -> dict[str, int]:
        """Reads the keyword arguments of the constructor from the arrays of a model file.

        The arrays may be those of another network. A network with sizes must override this method:
        its model files could not be loaded.
        """
        return {}


def arrays_of(network: Any) -> dict[str, Any]:
    """Returns the arrays that a model file of a network has, by key."""
    content = chainer.serializers.npz.serialize(network)
    return {key: numpy.asarray(value) for key, value in content.items()}


def output_arrays(network: Network, planes: Any) -> list[Any]:
    """Computes a network's outputs from planes on its device, as arrays: logits before values."""
    output = network(planes)
    variables = output if isinstance(output, (tuple, list)) else (output,)
    return [variable.array for variable in variables]


def split_output(network: Network, output: Any) -> tuple[Any, Any]:
    """Splits what ``network(planes)`` returned into logits (batch, 2187) and values (batch, 1).

    None stands for a head that is missing. OutputsError: the number of outputs is not the number of
    heads, or one has another shape.
    """
    heads = int(network.has_policy) + (network.value_kind is not None)
    found = len(output) if isinstance(output, (tuple, list)) else 1
    if found != heads:
        raise OutputsError(
            f"the class {type(network).__name__} returns {found} output(s), and its attributes "
            f"has_policy and value_kind say {heads}. Correct the attributes or its forward."
        )
    if network.value_kind is None:
        logits, values = output, None
    else:
        logits, values = output if network.has_policy else (None, output)
    if logits is not None and logits.shape[1:] != (LABEL_NUM,):
        raise OutputsError(
            f"the class {type(network).__name__} returns logits of the shape {logits.shape} in "
            f"place of (batch, {LABEL_NUM}). Correct its forward."
        )
    if values is not None and values.shape[1:] not in ((), (1,)):
        raise OutputsError(
            f"the class {type(network).__name__} returns values of the shape {values.shape} in "
            "place of (batch, 1). Correct its forward."
        )
    return logits, values
