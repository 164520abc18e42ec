"""Converts game records and position files to HCPE or PSV."""

import sys

from pydlshogi.commands.convert_positions import main

if __name__ == "__main__":
    sys.exit(main())
