"""The networks by name, as ``--network`` and model files use the names."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
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
    "policy_value_hand1x1_bn": ("policy_hand1x1", "PolicyValueHand1x1BNNetwork"),
    "policy_value_hand1x1_resnet": ("policy_value_resnet", "PolicyValueHand1x1Resnet"),
    "policy_value_history_bn": ("policy_hand1x1", "PolicyValueHistoryBNNetwork"),
    "policy_value_history_resnet": ("policy_value_resnet", "PolicyValueHistoryResnet"),
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

#: Networks that ``convert_model transfer --unfold`` makes.
UNFOLDABLE = ("policy_hand1x1_bn", "policy_value_hand1x1_bn", "policy_value_history_bn")

#: All names.
NETWORKS = tuple(_CLASSES)

#: The names of the book's networks. The book's classes load our model files of these.
BOOK = ("policy", "policy_bn", "value", "policy_value", "policy_value_resnet")


class UnknownNetwork(UserError, ValueError):
    """No network has that name; the text lists the known names."""


class UnknownSize(UserError, TypeError):
    """The network has no such size, or its model files would not tell it."""


def sizes_of(name: str) -> tuple[str, ...]:
    """Returns the names of the sizes that a network of this package has."""
    return _SIZES.get(name, ("channels",))


def network_class(name: str) -> type[Network]:
    """Returns the class of a network of this package, or of one that ``own.use`` made known."""
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
        name: One of :data:`NETWORKS`, or the name of a user's class (:func:`own.use`); any other
            raises UnknownNetwork.
        **sizes: Sizes other than the default: arguments of the class. UnknownSize: the network has
            no such size, or a model file would not tell it.
    """
    factory: Any = network_class(name)
    try:
        inspect.signature(factory).bind_partial(**sizes)
    except TypeError as error:
        raise UnknownSize(
            f"the network {name} cannot be made in this size: it {error}. Leave the option out."
        ) from None
    network = factory(**sizes)
    if own.known_class(name) is not None:
        _complete(network)
        if sizes:
            _check_stored(network, name, sizes)
    return network


def _complete(network: Any) -> None:
    """Makes the arrays that a user's network would make when it sees its first input.

    Chainer's links accept None as the number of inputs. A model file cannot be loaded into a
    network that has no arrays yet.
    """
    if all(parameter.is_initialized for parameter in network.params()):
        return
    import numpy

    from pydlshogi.compat import chainer

    planes = numpy.zeros((1, network.plane_num, 9, 9), numpy.float32)
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        network(planes)


def _check_stored(network: Any, name: str, sizes: Mapping[str, int]) -> None:
    """Refuses sizes of a user's network that no program could read from its model file."""
    from pydlshogi.network.network import arrays_of

    known = inspect.signature(type(network)).parameters
    stored = sizes_in(name, arrays_of(network))
    for size, value in sizes.items():
        default = known[size].default if size in known else None
        if stored.get(size, default) != value:
            raise UnknownSize(
                f"the class {name} cannot store its size: a model file with {size}={value} would "
                "not load. Define its method sizes_in (docs/your-own-network.md), or change the "
                f"default of {size} in its constructor."
            )


def sizes_in(name: str, arrays: Mapping[str, Any]) -> dict[str, int]:
    """Reads the keyword arguments of :func:`make_network` from the arrays of a model file.

    The arrays may be those of another network. A user's class may not be able to read them.
    """
    cls = network_class(name)
    try:
        return cls.sizes_in(arrays) or {}  # a user may forget the return
    except (LookupError, TypeError, ValueError, AttributeError):
        # A user's method may rely on arrays that another network does not have.
        if own.known_class(name) is None:
            raise
        return {}


def form_of(name: str) -> str:
    """Returns a name that is equal for networks with interchangeable model files."""
    return _FORM_OF.get(name, name)


def name_of(network: Any) -> str | None:
    """Returns the name of a network; None for another link."""
    place = (type(network).__module__, type(network).__qualname__)
    for name, (module, class_name) in _CLASSES.items():
        if place == (f"{__package__}.{module}", class_name):
            return name
    return own.known_name(type(network))
