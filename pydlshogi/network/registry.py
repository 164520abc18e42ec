"""The networks by name, as ``--network`` and model files use the names."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

from pydlshogi.errors import UserError
from pydlshogi.network import own

if TYPE_CHECKING:
    from pydlshogi.network.network import Network

#: The default network, the book's policy network.
DEFAULT = "policy"

# Module and class of each name. The modules are imported on use: listing names needs no Chainer.
_CLASSES = {
    DEFAULT: ("policy", "PolicyNetwork"),
    "policy_bn": ("policy_bn", "PolicyNetwork"),
    "policy_hand1x1": ("policy_hand1x1", "PolicyHand1x1Network"),
    "policy_hand1x1_unpool": ("policy_hand1x1", "PolicyHand1x1UnpoolNetwork"),
    "policy_hand1x1_bn": ("policy_hand1x1", "PolicyHand1x1BNNetwork"),
    "value": ("value", "ValueNetwork"),
    "policy_value": ("policy_value", "PolicyValueNetwork"),
    "policy_value_resnet": ("policy_value_resnet", "PolicyValueResnet"),
    "policy_value_hand1x1_bn": ("policy_value_hand1x1", "PolicyValueHand1x1BNNetwork"),
    "policy_value_hand1x1_resnet": ("policy_value_resnet", "PolicyValueHand1x1Resnet"),
    "policy_value_history_bn": ("policy_value_history", "PolicyValueHistoryBNNetwork"),
    "policy_value_history_resnet": ("policy_value_history", "PolicyValueHistoryResnet"),
    "policy_value_small": ("policy_value_small", "PolicyValueSmallNetwork"),
}

#: Names of all sizes: options of the programs, and arguments of the constructors.
SIZES = ("channels", "blocks")

#: Largest number of channels. A file with more is taken for a damaged one.
MOST_CHANNELS = 4096

# The sizes that a user can choose; all other networks have ``channels`` alone.
_SIZES = {
    "policy_value_resnet": SIZES,
    "policy_value_hand1x1_resnet": SIZES,
    "policy_value_history_resnet": SIZES,
    "policy_value_small": (),
}

# Networks that compute the same function of the same parameters.
_FORM_OF = {"policy_hand1x1_unpool": "policy_hand1x1"}

#: All names.
NETWORKS = tuple(_CLASSES)

#: The names of the book's networks. The book's classes load our model files of these.
BOOK = ("policy", "policy_bn", "value", "policy_value", "policy_value_resnet")


class UnknownNetwork(UserError, ValueError):
    """No network has that name; the text lists the known names."""


class UnknownSize(UserError, TypeError):
    """The network has no such size."""


def sizes_of(name: str) -> tuple[str, ...]:
    """Returns the names of the sizes that a network of this package has.

    Args:
        name: One of :data:`NETWORKS`.
    """
    return _SIZES.get(name, ("channels",))


def network_class(name: str) -> type[Network]:
    """Returns the class of a network: of this package, or one that ``own.use`` made known.

    Raises:
        UnknownNetwork: no network has that name.
    """
    known = own.known_class(name)
    if known is not None:
        return known
    if name not in _CLASSES:
        raise UnknownNetwork(
            f"network {name[:60]!r} is not known; choose from {', '.join(NETWORKS)}"
        )
    module, class_name = _CLASSES[name]
    return getattr(importlib.import_module(f"{__package__}.{module}"), class_name)


def make_network(name: str, **sizes: int) -> Network:
    """Makes a network with initial weights from numpy's global random generator.

    Args:
        name: One of :data:`NETWORKS`.
        **sizes: Sizes other than the default, as the class takes them
            (:func:`sizes_of`).

    Raises:
        UnknownNetwork: no network has that name.
        UnknownSize: the network has no such size.
    """
    factory: Any = network_class(name)
    try:
        inspect.signature(factory).bind_partial(**sizes)
    except TypeError as error:
        raise UnknownSize(
            f"the network {name} cannot be made in this size: it {error}. Leave the option out."
        ) from None
    return factory(**sizes)


def form_of(name: str) -> str:
    """Returns a name that is equal for networks with interchangeable model files.

    Args:
        name: Name of a network, known or not.
    """
    return _FORM_OF.get(name, name)


def name_of(network: Any) -> str | None:
    """Returns the name of a network; None for another link."""
    place = (type(network).__module__, type(network).__qualname__)
    for name, (module, class_name) in _CLASSES.items():
        if place == (f"{__package__}.{module}", class_name):
            return name
    return own.known_name(type(network))
