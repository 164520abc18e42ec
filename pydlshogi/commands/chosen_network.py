"""The network that a command line chooses, of the package or of the user."""

from __future__ import annotations

import argparse

from pydlshogi.errors import UserError


def chosen_network(args: argparse.Namespace) -> str:
    """Returns the name of a network; a file of the user is run first.

    Args:
        args: The parsed options ``--network``, ``--value_lambda`` and, of training programs,
            ``--policy_target`` and ``--value_head_only``.

    Raises:
        UserError: the file cannot be used, or its network lacks the head of an option.
    """
    # Chainer is imported only now: a wrong command line has been reported before.
    from pydlshogi.network import own
    from pydlshogi.network.registry import network_class

    if not own.is_spec(args.network):
        return args.network
    name = own.use(args.network)
    network = network_class(name)
    has_value, has_policy = network.value_kind is not None, network.has_policy
    value_head_only = getattr(args, "value_head_only", False)
    policy_target = getattr(args, "policy_target", "played")
    for option, head, missing in (
        ("--value_lambda", "value", args.value_lambda < 1 and not has_value),
        ("--value_head_only", "value", value_head_only and not has_value),
        ("--policy_target", "policy", policy_target != "played" and not has_policy),
    ):
        if missing:
            raise UserError(
                f"{option} is for a network with a {head} head, and {args.network} has none. "
                "Leave it out."
            )
    return name
