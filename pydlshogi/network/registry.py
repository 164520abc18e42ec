"""The networks by the names that ``--network`` and model files use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydlshogi.network.network import Network

#: The book's network: the one of a model file that does not say which it holds.
DEFAULT = "policy"

# Module and class of each; imported when wanted, so that names can be listed at once.
_CLASSES = {
    DEFAULT: ("policy", "PolicyNetwork"),
    "policy_bn": ("policy_bn", "PolicyBNNetwork"),
    "policy_hand1x1": ("policy_hand1x1", "PolicyHand1x1Network"),
    "policy_hand1x1_unpool": ("policy_hand1x1", "PolicyHand1x1UnpoolNetwork"),
    "policy_hand1x1_bn": ("policy_hand1x1", "PolicyHand1x1BNNetwork"),
    "policy_hand1x1_ply": ("policy_hand1x1", "PolicyHand1x1PlyNetwork"),
    "policy_value": ("policy_value", "PolicyValueNetwork"),
    "policy_value_resnet": ("policy_value", "PolicyValueResnetNetwork"),
    "policy_value_small": ("policy_value_small", "PolicyValueSmallNetwork"),
}

# Forms of another network: they compute the same from the same parameters.
_FORM_OF = {"policy_hand1x1_unpool": "policy_hand1x1"}

#: All names.
NETWORKS = tuple(_CLASSES)


class UnknownNetwork(ValueError):
    """No network has that name; the text lists those that there are."""


def make_network(name: str, convolution: str = "auto") -> Network:
    """Makes a network with weights drawn from numpy's own generator.

    Args:
        name: One of :data:`NETWORKS`.
        convolution: One of :data:`pydlshogi.network.cpu.convolution.CONVOLUTIONS`.

    Raises:
        UnknownNetwork: no network has that name.
        ValueError: ``convolution`` is not known.
    """
    if name not in _CLASSES:
        raise UnknownNetwork(
            f"network {name[:60]!r} is not known; choose from {', '.join(NETWORKS)}"
        )
    module, class_name = _CLASSES[name]
    network_class = getattr(importlib.import_module(f"{__package__}.{module}"), class_name)
    return network_class(convolution=convolution)


def form_of(name: str) -> str:
    """Gives a name that is the same for networks whose model files are interchangeable.

    Args:
        name: Of a network; it need not be known.
    """
    return _FORM_OF.get(name, name)


def name_of(network: Any) -> str | None:
    """Gives the name of a network; None for a link that has none."""
    own = (type(network).__module__, type(network).__qualname__)
    for name, (module, class_name) in _CLASSES.items():
        if own == (f"{__package__}.{module}", class_name):
            return name
    return None
