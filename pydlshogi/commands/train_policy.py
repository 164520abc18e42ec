"""The program train_policy: trains the policy network by default."""

from pydlshogi.commands.train import training_program

main = training_program("train_policy")
