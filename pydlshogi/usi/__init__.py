"""The USI dialogue between a GUI and a player; nothing here imports anything heavy."""
