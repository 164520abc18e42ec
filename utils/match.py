"""Plays matches between USI engines and prints a table of the results, with Elo."""

import sys

from pydlshogi.commands.match import main

if __name__ == "__main__":
    sys.exit(main())
