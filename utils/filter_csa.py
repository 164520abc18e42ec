"""Chooses the CSA files of a folder by rating, number of moves and result."""

import sys

from pydlshogi.kifu.filter import main

if __name__ == "__main__":
    sys.exit(main())
