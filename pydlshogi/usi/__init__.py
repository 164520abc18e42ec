"""The USI dialogue between a GUI and a player. Nothing here imports anything heavy."""
