"""What a GUI can set of our players.

The engine answers ``usi`` from here before it imports numpy, Chainer or the board.
"""

from __future__ import annotations

from pydlshogi.processors import (
    MOST_THREADS,
    ThreadsError,
    processors,
    threads_of_environment,
)
from pydlshogi.uct.settings import Settings
from pydlshogi.usi.options import Button, Check, Combo, Filename, Option, Options, Spin

#: The default of ``modelfile`` stands for the default model. It is a short relative path:
#: GUIs cut a default at a space and may not read other characters than ASCII.
POLICY_VALUE_MODEL = "model/model_policy_value"
VALUE_MODEL = "model/model_value"

#: The models that this package ships. A wheel has them in another folder than a clone.
SHIPPED_MODELS = ("model/model_policy", POLICY_VALUE_MODEL)

# Threads of a player that evaluates one position a move. One thread is good whether the machine is
# idle or busy. On two idle cores, a second thread saves 4 of 12 ms. While other programs compute,
# two threads wait for each other and need three to four times as long
# (benchmarks/engine_threads.py).
_THREADS = 1

#: Choices of ``device``: one word each, since GUIs cut them at a space.
DEVICES = ("auto", "cpu", *(f"gpu{n}" for n in range(8)))

#: Choices of ``backend`` (:data:`pydlshogi.inference.backend.BACKENDS`, which needs numpy).
BACKENDS = ("auto", "own", "openvino_float32", "openvino_bfloat16", "openvino_int8")

#: The level of full strength, and the highest one that needs no value. All but the first are in
#: :mod:`pydlshogi.player.levels`.
FULL_LEVEL, POLICY_LEVEL = 20, 10

#: No position has more legal moves.
MOST_MOVES = 593

_MOST_PLIES = 100000
_MOST_NODES = 10**9
_MOST_MEGABYTES = 24000  # the tree numbers its edges with 31 bits

#: Options that are numbers of :class:`Settings`: the name; the number's name; what it is
#: multiplied by, since options are whole numbers; the least and the largest value.
_SEARCH_NUMBERS = (
    ("Softmax_Temperature", "temperature", 100, 1, 1000),
    ("C_init", "c_init", 100, 0, 1000),
    ("C_base", "c_base", 1, 1, 10**6),
    ("C_fpu_reduction", "fpu_reduction", 100, 0, 100),
    ("C_init_root", "c_init_root", 100, 0, 1000),
    ("C_base_root", "c_base_root", 1, 1, 10**6),
    ("C_fpu_reduction_root", "fpu_reduction_root", 100, 0, 100),
    ("mate_plies", "mate_plies", 1, 0, 7),
)


def network_options(modelfile: str, *more: Option) -> Options:
    """Declares the options of a player with a network; ``more`` are those of this player alone."""
    return Options(
        Filename("modelfile", modelfile),
        Filename("network_file"),
        Button("reload_model"),
        Combo("device", "auto", DEVICES),
        Spin("Threads", default_threads(_THREADS), low=1, high=MOST_THREADS),
        *more,
        Spin("MultiPV", 5, low=1, high=MOST_MOVES),
        Check("mate_in_one", True),
        Check("declaration_win", True),
        Spin("resign_threshold", 0, low=0, high=50),
        Combo("repetition", "allow", ("allow", "avoid")),
        # shogiarena sends it. Only a search can follow it.
        Spin("Draw_Ply", 0, low=0, high=_MOST_PLIES, aliases=("MaxMovesToDraw",)),
        Filename("debug_log"),
    )


def choice_options() -> tuple[Option, ...]:
    """Declares the options of a player that chooses among moves by their logits."""
    return (
        Combo("strategy", "greedy", ("greedy", "boltzmann")),
        Spin("temperature", 50, low=1, high=1000),
        Spin("random_plies", 0, low=0, high=_MOST_PLIES),
        Spin("random_seed", -1, low=-1, high=2**31 - 1),
    )


def policy_options() -> Options:
    """Declares the options of the policy player."""
    return network_options(POLICY_VALUE_MODEL, *choice_options())


def search1_options() -> Options:
    """Declares the options of the player that looks one move ahead."""
    return network_options(VALUE_MODEL, *choice_options())


def mcts_options() -> Options:
    """Declares the options of the player with a tree search.

    Those with the name of a dlshogi option have nearly the same meaning.
    """
    defaults = Settings()
    numbers = [
        Spin(name, round(factor * getattr(defaults, number)), low=low, high=high)
        for name, number, factor, low, high in _SEARCH_NUMBERS
    ]
    return Options(
        Filename("modelfile", POLICY_VALUE_MODEL),
        Filename("network_file"),
        Button("reload_model"),
        Combo("device", "auto", DEVICES),
        Combo("backend", "auto", BACKENDS),
        Spin("Threads", default_threads(processors()), low=1, high=MOST_THREADS),
        Spin("Level", FULL_LEVEL, low=1, high=FULL_LEVEL),
        Check("USI_Ponder", True),
        Spin("USI_Hash", defaults.megabytes, low=16, high=_MOST_MEGABYTES),
        Spin("MultiPV", 1, low=1, high=MOST_MOVES),
        Spin("PV_Interval", 500, low=0, high=3600000),
        Spin("Byoyomi_Margin", 300, low=0, high=10000),
        Spin("nodes", 0, low=0, high=_MOST_NODES),
        Spin("batch_size", 0, low=0, high=1024),
        *numbers,
        Check("Mate_Root_Search", defaults.root_mate),
        Check("Mate_PV_Search", defaults.line_mate),
        Check("declaration_win", True),
        Spin("Draw_Ply", 0, low=0, high=_MOST_PLIES, aliases=("MaxMovesToDraw",)),
        Spin("Draw_Value_Black", 500, low=0, high=1000),
        Spin("Draw_Value_White", 500, low=0, high=1000),
        Spin("resign_threshold", 0, low=0, high=50),
        Spin("random_plies", 0, low=0, high=_MOST_PLIES),
        Spin("random_seed", -1, low=-1, high=2**31 - 1),
        Check("OwnBook", True),
        Filename("Book_File"),
        Filename("debug_log"),
    )


def search_numbers(options: Options) -> dict[str, float]:
    """Returns the numbers of :class:`Settings` that options choose, by their names."""
    return {
        number: options[name] / factor if factor > 1 else options[name]
        for name, number, factor, _, _ in _SEARCH_NUMBERS
    }


def default_threads(otherwise: int) -> int:
    """Returns the number of threads that the environment sets; without one, another number.

    A wrong variable is ignored here, because ``usi`` must be answered. The player refuses it.
    """
    try:
        number = threads_of_environment() or otherwise
    except ThreadsError:
        number = otherwise
    return min(number, MOST_THREADS)
