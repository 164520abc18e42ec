"""Trains several networks alike and compares them: table and curves."""

import sys

from pydlshogi.training.compare import main

if __name__ == "__main__":
    sys.exit(main())
