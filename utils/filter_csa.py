"""Selects the CSA files of a folder by rating, number of moves and result."""

import sys

from pydlshogi.commands.filter_csa import main

if __name__ == "__main__":
    sys.exit(main())
