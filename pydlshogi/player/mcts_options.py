"""The options of the player with a tree search.

They have a module of their own: the engine answers ``usi`` before it imports numpy, Chainer or
the board. Options with the name of a dlshogi option have nearly the same meaning
(docs/search.md names the differences).
"""

from __future__ import annotations

from pydlshogi.player.options import (
    BACKENDS,
    DEVICES,
    MOST_MOVES,
    POLICY_VALUE_MODEL,
    default_threads,
)
from pydlshogi.processors import MOST_THREADS, processors
from pydlshogi.usi.options import Button, Check, Combo, Filename, Options, Spin

_MOST_PLIES = 100000
_MOST_NODES = 10**9


def mcts_options() -> Options:
    """Declares the options, which docs/search.md explains."""
    return Options(
        Filename("modelfile", POLICY_VALUE_MODEL),
        Filename("network_file"),
        Button("reload_model"),
        Combo("device", "auto", DEVICES),
        Combo("backend", "auto", BACKENDS),
        Spin("Threads", default_threads(processors()), low=1, high=MOST_THREADS),
        Check("USI_Ponder", True),
        Spin("USI_Hash", 1024, low=16, high=1 << 20),
        Spin("MultiPV", 1, low=1, high=MOST_MOVES),
        Spin("PV_Interval", 500, low=0, high=3600000),
        Spin("Byoyomi_Margin", 300, low=0, high=10000),
        Spin("nodes", 0, low=0, high=_MOST_NODES),
        Spin("batch_size", 0, low=0, high=1024),
        Spin("Softmax_Temperature", 140, low=1, high=1000),
        Spin("C_init", 90, low=0, high=1000),
        Spin("C_base", 28288, low=1, high=10**6),
        Spin("C_fpu_reduction", 27, low=0, high=100),
        Spin("C_init_root", 72, low=0, high=1000),
        Spin("C_base_root", 25617, low=1, high=10**6),
        Spin("C_fpu_reduction_root", 0, low=0, high=100),
        Spin("mate_plies", 5, low=0, high=7),
        Check("Mate_Root_Search", True),
        Check("Mate_PV_Search", True),
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
