"""The programs. Each module has the parser and the ``main`` of one program."""

import sys

# ``python -m pydlshogi.commands.match`` would end without a word: the module defines the program
# and does not run it. While Python looks for the module of ``-m``, this is the first argument.
if sys.argv[:1] == ["-m"]:
    sys.exit(
        "pydlshogi: error: start a program by: python -m pydlshogi NAME (without NAME: a list)"
    )
