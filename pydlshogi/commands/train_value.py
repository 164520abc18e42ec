"""The program train_value: trains the value network by default."""

import sys

from pydlshogi.commands.train import training_program

main = training_program("train_value")

if __name__ == "__main__":
    sys.exit(main())
