"""Folds batch normalization into the convolutions: a model file of the book's network."""

import sys

from pydlshogi.network.fold import main

if __name__ == "__main__":
    sys.exit(main())
