"""What a GUI can set of a policy player.

Apart from the player, because ``usi`` is answered from here before numpy, chainer or
even the board are imported.
"""

from __future__ import annotations

from pydlshogi.usi.options import Button, Check, Combo, Filename, Options, Spin

#: The shipped model, in the words of the option: GUIs cut a default at a space and
#: may not read what is not ASCII, so an absolute path would not come back whole.
SHIPPED_MODEL = "model/model_policy"

#: Choices of ``device``: one word each, since GUIs cut them at a space.
DEVICES = ("auto", "cpu", *(f"gpu{n}" for n in range(8)))

#: Moves that a position can have at most, which is thus the most there is to show.
MOST_MOVES = 593


def policy_options() -> Options:
    """Declares the options of a policy player, each with its default.

    Returns:
        The options; the README has a table of what each does.
    """
    return Options(
        Filename("modelfile", SHIPPED_MODEL),
        Button("reload_model"),
        Combo("device", "auto", DEVICES),
        Combo("strategy", "greedy", ("greedy", "boltzmann", "value1")),
        Spin("temperature", 50, low=1, high=1000),
        Spin("random_seed", -1, low=-1, high=2**31 - 1),
        Spin("MultiPV", 5, low=1, high=MOST_MOVES),
        Check("mate_in_one", True),
        Check("declaration_win", True),
        Spin("resign_threshold", 0, low=0, high=50),
        Combo("repetition", "allow", ("allow", "avoid")),
        Filename("debug_log"),
    )
