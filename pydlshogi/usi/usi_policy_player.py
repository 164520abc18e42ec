"""Runs the engine: ``python -m pydlshogi.usi.usi_policy_player``, as the book's .bat file does."""

import sys

from pydlshogi.commands.policy_player_usi import main

if __name__ == "__main__":
    sys.exit(main())
