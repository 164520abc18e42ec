"""Draws loss and accuracy over iterations from the logs of train_policy."""

import sys

from pydlshogi.commands.plot_log import main

if __name__ == "__main__":
    sys.exit(main())
