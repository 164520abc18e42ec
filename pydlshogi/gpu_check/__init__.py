"""All that waits for a GPU, in one run: tests, speed, training, play.

The program is :mod:`pydlshogi.commands.gpu_check`. Each part runs in processes of its own
with a time limit. So a part that fails, hangs or breaks CUDA stops no other part.

===========  ======================================================================
process      a command with a time limit, its output and its end
table        the results, as text and in files
parts        what each part runs and reads from its output
trainings    the parts that train
job          what the run is asked to do, and what a part may use
check        the run: the parts in order, and their share of the time
division     division of large files
machine      child process: versions of the GPU, CUDA and the packages
reading      child process: reads the games and writes their caches
rate         child process: speed of training and of validation
moves        child process: moves of an engine, with their times
===========  ======================================================================
"""
