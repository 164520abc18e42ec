"""Training of networks with Chainer's Trainer, from two kifu lists to a model file.

- :mod:`.run`: a whole run, from its options to its files
- :mod:`.trainer`: Chainer's Trainer with its extensions and ours
- :mod:`.batches`: the order of the positions, and their planes
- :mod:`.recipe`: optimizer and learning rate
- :mod:`.defaults`: defaults of options, without heavy imports
- :mod:`.loss`, :mod:`.evaluation`: the loss, and the measurements during training
- :mod:`.end`: the end of a run, also by Ctrl-C
- :mod:`.state`, :mod:`.resume`: the content of a state file; saving and resuming
- :mod:`.checkpoint`, :mod:`.outputs`: the model file and the state file as a pair; output files
- :mod:`.log`, :mod:`.plot`: the lines of a log, and their picture
- :mod:`.evaluate`: evaluation of a model by phase of the game
- :mod:`.compare`, :mod:`.compare_table`: comparison of recipes
"""
