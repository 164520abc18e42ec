"""Starts the program of a script, in the Python that has the packages it needs.

Each script of the clone calls :func:`launch`, and so do the modules that the book starts with
``python -m pydlshogi.usi.usi_...``. If the running Python is too old or lacks
a package, the Python of the clone's ``.venv`` continues.

This file runs on every Python from 2.7 on and imports only the standard library. So an old
Python also ends with one sentence.
"""

import importlib
import os
import subprocess
import sys

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


def launch(script):
    # type: (str) -> None
    """Runs ``main`` of the module in ``pydlshogi/commands`` that is named like a script.

    Args:
        script: Path of the script in the clone, or of a link to it.

    Raises:
        SystemExit: Always, with the exit status of the program.
    """
    script = os.path.realpath(script)
    name = os.path.splitext(os.path.basename(script))[0]
    # Removed, so that engines and workers started by the program can go over as well.
    has_gone_over = os.environ.pop(GONE_OVER, None) == VENV
    problem = _problem()
    if not problem:
        status = _run(name)
    elif has_gone_over or not os.path.lexists(VENV):
        status = _fail(name, problem + " " + _remedy(has_gone_over))
    else:
        status = _go_over(name, script)
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
    return "Run %s in %s. It makes .venv, which this program then uses." % (_SETUP, ROOT)


def _run(name):
    # type: (str) -> int
    """Runs a program in this Python and returns its exit status."""
    if not os.path.exists(os.path.join(ROOT, "pydlshogi", "commands", name + ".py")):
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


def _go_over(name, script):
    # type: (str, str) -> int
    """Runs a script in the Python of ``.venv``; returns only on Windows and on errors."""
    python = os.path.join(VENV, *(("Scripts", "python.exe") if _ON_WINDOWS else ("bin", "python")))
    command = [python, script] + sys.argv[1:]
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
