"""Splits the game records of a folder into a training and a test list."""

import sys

from pydlshogi.commands.make_kifu_list import main

if __name__ == "__main__":
    sys.exit(main())
