"""The front door: the table of all programs, and their start in a Python that has the packages.

``python -m pydlshogi NAME`` and the command ``pydlshogi`` call :func:`main`. The scripts of the
clone call :func:`launch`, and so do the modules that the book starts with
``python -m pydlshogi.usi.usi_...``. If the running Python is too old or lacks
a package, the Python of the clone's ``.venv`` continues.

This file runs on every Python from 2.7 on and imports only the standard library. So an old
Python also ends with one sentence.
"""

import difflib
import importlib
import os
import subprocess
import sys

#: All programs, by group: the name, which is also that of the module in ``pydlshogi/commands``,
#: and what the program does.
PROGRAMS = (
    (
        "Train a network",
        (
            ("train_kifu", "train on a folder of records: lists, training, curve in one command"),
            ("train_policy", "train a network that predicts moves"),
            ("train_value", "train a network that predicts the result of the game"),
            ("train_policy_value", "train a network that predicts both"),
            ("train_policy_value_resnet", "the same with the book's residual network"),
            ("compare_recipes", "train a network by several recipes and compare the results"),
            ("evaluate_model", "measure loss and accuracy of a model, by phase of the game"),
            ("plot_log", "draw the curves of trainings from their logs"),
        ),
    ),
    (
        "Prepare games",
        (
            ("make_kifu_list", "divide the records of a folder into a training and a test list"),
            ("filter_csa", "select CSA files by rating, number of moves and result"),
            ("convert_positions", "convert records and position files to HCPE or PSV"),
            ("make_positions", "store games in the form that a large training reads fastest"),
            ("fit_eval_scale", "fit the scale that turns evaluations into winning rates"),
        ),
    ),
    (
        "Convert models",
        (
            ("convert_model", "average, calibrate, fold_bn, transfer: make a model from others"),
            ("transfer_policy_to_value", "copy the layers of a policy network to a value network"),
            ("export_onnx", "convert a model to ONNX"),
        ),
    ),
    (
        "Play (the board in the browser; USI engines, to register in a GUI)",
        (
            ("play", "play on a board in the browser, and see what the network thinks"),
            ("mcts_player_usi", "the engine that searches: the strongest"),
            ("policy_player_usi", "the engine that plays the most probable move"),
            ("search1_player_usi", "the engine that looks one move ahead"),
            ("match", "play games between engines and print the results"),
            ("make_opening_book", "make an opening book from games"),
        ),
    ),
    (
        "Learn from own games",
        (
            ("self_play", "play games of a network against itself, as training data"),
            ("reinforce", "the loop: self-play, training, a match, again"),
        ),
    ),
    (
        "Look at games",
        (
            ("analyze_kifu", "analyze a game: comments, a graph and a page"),
            ("show_position", "draw a position with the moves of a model"),
        ),
    ),
)

#: The names of all programs.
NAMES = tuple(name for _, programs in PROGRAMS for name, _ in programs)

#: Oldest Python that the package supports.
OLDEST = (3, 9)

#: Packages that every program needs.
NEEDED = ("chainer", "filelock", "numpy", "shogi", "threadpoolctl", "tqdm")

#: Environment variable that marks the Python of ``.venv`` as started from here.
GONE_OVER = "PYDLSHOGI_VENV"

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
VENV = os.path.join(ROOT, ".venv")

_ON_WINDOWS = os.name == "nt"
_SETUP = "bat\\setup.bat" if _ON_WINDOWS else "make setup"


def main():
    # type: () -> None
    """Runs the program that the first argument names, or lists all; raises SystemExit."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in ("-h", "--help"):
        sys.stdout.write(_listing())
        sys.exit(0)
    if name not in NAMES:
        near = " or ".join(difflib.get_close_matches(name, NAMES))
        sys.stderr.write(
            "pydlshogi: error: there is no program %s.%s python -m pydlshogi lists all programs.\n"
            % (name, " Perhaps you mean %s." % near if near else "")
        )
        sys.exit(2)
    del sys.argv[1]
    _start(name, ["-m", "pydlshogi", name])


def launch(script):
    # type: (str) -> None
    """Runs the program that is named like a script, or like a link to it; raises SystemExit."""
    script = os.path.realpath(script)
    _start(os.path.splitext(os.path.basename(script))[0], [script])


def _listing():
    # type: () -> str
    """Lists all programs, one a line."""
    width = max(map(len, NAMES))
    lines = ["usage: python -m pydlshogi NAME [ARGUMENT ...]", "", "--help after NAME explains it."]
    for group, programs in PROGRAMS:
        lines += ["", group + ":"]
        lines += ["  %s  %s" % (name.ljust(width), line) for name, line in programs]
    return "\n".join(lines) + "\n"


def _start(name, words):
    # type: (str, list[str]) -> None
    """Runs a program, here or in the Python of ``.venv``; always raises SystemExit.

    A Python is given the words, before the arguments, to run this program.
    """
    # Removed, so that engines and workers started by the program can go over as well.
    has_gone_over = os.environ.pop(GONE_OVER, None) == VENV
    problem = _problem()
    if not problem:
        status = _run(name)
    elif has_gone_over or not os.path.lexists(VENV):
        status = _fail(name, problem + " " + _remedy(has_gone_over))
    else:
        status = _go_over(name, words)
    sys.exit(status)


def python_path():
    # type: () -> str
    """Returns the PYTHONPATH with which a child process finds this package in any folder."""
    return os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))


def _problem():
    # type: () -> str
    """Says why this Python cannot run the program; empty if it can."""
    version = ".".join(str(number) for number in sys.version_info[:3])
    python = "This Python (%s, version %s)" % (sys.executable, version)
    if sys.version_info < OLDEST:
        return "%s is older than %d.%d." % ((python,) + OLDEST)
    import importlib.util  # Python 2 has no such module

    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        return "%s lacks: %s." % (python, ", ".join(missing))
    return ""


def _remedy(has_gone_over):
    # type: (bool) -> str
    """Says how to get a Python that can run the program."""
    if has_gone_over:
        return "Remove the folder %s, then run %s in %s." % (VENV, _SETUP, ROOT)
    if not os.path.exists(os.path.join(ROOT, "pyproject.toml")):  # an installed copy
        return "Install pydlshogi with pip in another Python."
    return "Run %s in %s. It makes .venv, which this program then uses." % (_SETUP, ROOT)


def _run(name):
    # type: (str) -> int
    """Runs a program in this Python and returns its exit status."""
    if name not in NAMES:
        return _fail(
            name,
            "The name of the file says which program it starts, and there is no program %s. "
            "Give the file its old name, or make a link to it." % name,
        )
    try:
        main = importlib.import_module("pydlshogi.commands." + name).main
        return int(main())
    except KeyboardInterrupt:  # during the import
        return 130


def _go_over(name, words):
    # type: (str, list[str]) -> int
    """Runs a program in the Python of ``.venv``; returns only on Windows and on errors."""
    python = os.path.join(VENV, *(("Scripts", "python.exe") if _ON_WINDOWS else ("bin", "python")))
    command = [python] + words + sys.argv[1:]
    os.environ[GONE_OVER] = VENV
    try:
        if _ON_WINDOWS:  # there exec would not wait for the program
            return _wait(subprocess.Popen(command))
        os.execv(python, command)
    except OSError as error:
        return _fail(
            name,
            "The Python of this clone cannot be started: %s: %s. "
            "Make it executable for this user, or remove the folder %s and run %s in %s."
            % (python, error.strerror, VENV, _SETUP, ROOT),
        )


def _wait(process):
    # type: (subprocess.Popen[bytes]) -> int
    """Waits for a process, which receives Ctrl-C itself."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            pass


def _fail(name, sentence):
    # type: (str, str) -> int
    """Prints a sentence, for a GUI also as a USI line, and returns the status 1."""
    if sys.stderr:
        sys.stderr.write("%s: error: %s\n" % (name, sentence))
    if name.endswith("_usi") and sys.stdout:
        sys.stdout.write("info string %s\n" % _ascii(sentence))
    return 1


def _ascii(text):
    # type: (str) -> str
    """Escapes all that is not ASCII: the encoding of standard output may lack a character."""
    return "".join(c if ord(c) < 128 else "\\u%04x" % ord(c) for c in text)
