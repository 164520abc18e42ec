"""Fits the scale that turns engine evaluations into winning probabilities."""

import sys

from pydlshogi.commands.fit_eval_scale import main

if __name__ == "__main__":
    sys.exit(main())
