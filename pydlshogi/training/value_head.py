"""The value head of a network as a network of its own, to train it alone.

The trunk computes its input. The trunk and the policy head stay as they are. They need no gradient,
so training is faster: the forward pass of the trunk is most of the work.
"""

from __future__ import annotations

from typing import Any

from pydlshogi.compat import chainer
from pydlshogi.errors import UserError
from pydlshogi.network.network import Network
from pydlshogi.training.recipe import Recipe


class ValueHeadError(UserError):
    """The value head of a network cannot be trained alone."""


def trained_part(network: Network, recipe: Recipe) -> Network:
    """Returns what a recipe trains: the network, or its ``ValueHead``."""
    return ValueHead(network) if recipe.value_head_only else network


class ValueHead(Network):
    """The value head of a network; both share its arrays.

    Its parameters are those of the head alone. So an optimizer that is set up with it changes
    nothing else. The trunk must be on the device of the planes.

    Raises:
        ValueHeadError: the network does not say what its value head is.
    """

    has_policy = False

    def __init__(self, network: Network) -> None:
        _check(network)
        super().__init__()
        self.value_kind = network.value_kind
        self.value_output = network.value_output
        self.plane_num = network.plane_num
        self._network: Any = network  # not a child: its parameters would be trained
        with self.init_scope():
            for name in network.value_head:
                setattr(self, name, network[name])

    def forward(self, x: Any) -> Any:
        """Computes the values (batch, 1) from planes (batch, plane_num, 9, 9)."""
        # Batch normalization of the trunk must use its statistics, as in play.
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            h = self._network.trunk(x)
        return self._network.value(h)


def _check(network: Any) -> None:
    names = network.value_head
    links = {name for name, _ in network.namedlinks(skipself=True)}
    if (
        network.value_kind is None
        or not (isinstance(names, tuple) and names)
        or any(f"/{name}" not in links for name in names)
        or not (hasattr(network, "trunk") and hasattr(network, "value"))
    ):
        raise ValueHeadError(
            f"the class {type(network).__name__} does not say what its value head is. Give it "
            'value_head = ("NAME", ...), the names of links, and the methods trunk and value (see '
            "docs/your-own-network.md), or train all of it, without value_head_only."
        )
