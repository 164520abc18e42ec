"""Training of networks with Chainer's Trainer, from two kifu lists to a model file.

- :mod:`.recipe`: the options of a training, each declared once, without heavy imports
- :mod:`.run`: a whole run, from its options to its files
- :mod:`.datasets`: the training and the test positions, from two lists
- :mod:`.trainer`: Chainer's Trainer with its extensions and ours
- :mod:`.batches`, :mod:`.order`: the order of the positions, and their planes
- :mod:`.optimizer`: what is trained, optimizer and learning rate
- :mod:`.targets`, :mod:`.eval_scale`: what the two heads learn; the scale of the evaluations
- :mod:`.loss`, :mod:`.extensions`: the loss; measurements and bars during training
- :mod:`.end`: the end of a run, also by Ctrl-C
- :mod:`.state`: the content of a state file
- :mod:`.checkpoint`: saving and resuming; model file and state file are a matching pair
- :mod:`.log`, :mod:`.log_file`, :mod:`.plot`: the lines of a log, where they go, their picture
- :mod:`.parallel`: several processes that train one network
- :mod:`.evaluate`, :mod:`.calibration`: evaluation of a model; correction of its values
- :mod:`.compare`: comparison of recipes
- :mod:`.average`: the mean of two models
"""
