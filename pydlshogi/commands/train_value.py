"""The program train_value: trains the value network by default."""

from pydlshogi.commands.train import training_program

main = training_program("train_value")
