"""Training: from two kifu lists to a model file, with Chainer's own Trainer.

The loop is Chainer's; here is what Chainer does not know:

- :mod:`.parser`, :mod:`.main`, :mod:`.run`: the program ``train_policy``
- :mod:`.trainer`: puts Chainer's parts and ours together
- :mod:`.batches`: numbers of positions in random order, and their planes
- :mod:`.recipe`, :mod:`.average`: how it is learned, the options beyond the published recipe
- :mod:`.loss`, :mod:`.evaluation`: what is learned, measured and logged
- :mod:`.end`: when a run is over, Ctrl-C included
- :mod:`.checkpoint`, :mod:`.state`, :mod:`.outputs`: the files a run leaves
- :mod:`.log`, :mod:`.plot`: log lines, written, read and drawn
- :mod:`.compare`, :mod:`.compare_recipes`, :mod:`.compare_table`: the programs of these names
- :mod:`.evaluate`: the program ``evaluate_model``
"""
