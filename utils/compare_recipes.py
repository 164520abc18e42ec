"""Trains one network by several recipes and compares them on games held out."""

import sys

from pydlshogi.commands.compare_recipes import main

if __name__ == "__main__":
    sys.exit(main())
