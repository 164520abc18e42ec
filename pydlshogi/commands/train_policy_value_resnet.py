"""The program train_policy_value_resnet: trains the residual network with both heads by default."""

import sys

from pydlshogi.commands.train import training_program

main = training_program("train_policy_value_resnet")

if __name__ == "__main__":
    sys.exit(main())
