"""Measures a model on the games of a list: loss and accuracy, by phase of the game."""

import sys

from pydlshogi.commands.evaluate_model import main

if __name__ == "__main__":
    sys.exit(main())
