"""The end of every program: one sentence and a status for each error."""

import errno
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pydlshogi.commands.program import program, report_to
from pydlshogi.errors import UserError
from pydlshogi.signals import Terminated


def end(error, capsys, **options):
    """Returns the status of a program that raises an error, and what it prints."""

    @program("tool", **options)
    def main(argv=None):
        raise error

    status = main()
    output = capsys.readouterr()
    assert output.out == ""
    return status, output.err


class FileError(UserError, OSError):
    """An error of both kinds, as some of ours are."""


@pytest.mark.parametrize(
    "error, status, text",
    [
        (UserError("x.csa is empty. Remove it."), 1, "tool: error: x.csa is empty. Remove it.\n"),
        (FileError("x.csa is empty."), 1, "tool: error: x.csa is empty.\n"),
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "a/b"),
            1,
            "tool: error: a/b: No such file or directory.\n",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            1,
            "tool: error: No space left on device.\n",
        ),
        (OSError("the socket is gone"), 1, "tool: error: the socket is gone.\n"),
        (TimeoutError(), 1, "tool: error: TimeoutError.\n"),
        (KeyboardInterrupt(), 130, "tool: interrupted.\n"),
        (Terminated(), 143, "tool: interrupted.\n"),
    ],
)
def test_an_error_is_one_line_and_a_status(capsys, error, status, text):
    assert end(error, capsys) == (status, text)


def test_an_interruption_tells_what_to_do_next(capsys):
    assert end(KeyboardInterrupt(), capsys, interrupted="Run it again.") == (
        130,
        "tool: interrupted. Run it again.\n",
    )


def test_memory_that_runs_out_tells_the_remedy(capsys):
    assert end(MemoryError("2 GiB."), capsys, remedy="Lower --batchsize.") == (
        1,
        "tool: error: there is not enough memory (2 GiB). Lower --batchsize.\n",
    )


def test_a_missing_package_is_named(capsys):
    for module, name in (("xyz", "xyz"), ("shogi.CSA", "python-shogi")):
        status, text = end(ModuleNotFoundError(f"No module named '{module}'", name=module), capsys)
        assert status == 1
        package = module.partition(".")[0]
        assert text.startswith(f"tool: error: the Python package {package} is not installed in ")
        assert text.endswith(f" Install it: python -m pip install {name}\n")
        assert text.count("\n") == 1


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a fault of ours"),
        ModuleNotFoundError("No module named 'pydlshogi.x'", name="pydlshogi.x"),
    ],
)
def test_faults_of_this_package_keep_their_traceback(capsys, error):
    with pytest.raises(type(error)):
        end(error, capsys)


def test_the_status_and_the_arguments_pass_through():
    @program("tool")
    def main(argv=None):
        """Says how many."""
        return len(argv)

    assert main(["a", "b"]) == 2
    assert main.__doc__ == "Says how many."


def test_a_usage_error_of_argparse_passes_through():
    @program("tool")
    def main(argv=None):
        raise SystemExit(2)

    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2


@pytest.mark.parametrize(
    "error, status, level, message",
    [
        (UserError("x is empty."), 1, logging.ERROR, "x is empty."),
        (UserError("error: twice."), 1, logging.ERROR, "error: twice."),
        (KeyboardInterrupt(), 130, logging.WARNING, "interrupted. Nothing is lost."),
        (Terminated(), 143, logging.WARNING, "interrupted. Nothing is lost."),
    ],
)
def test_a_program_with_a_log_tells_its_errors_there_only(
    capsys, caplog, error, status, level, message
):
    logger = logging.getLogger("pydlshogi.test_program")

    @program("tool")
    def main(argv=None):
        with report_to(logger, interrupted="Nothing is lost."):
            raise error

    assert main() == status
    assert caplog.record_tuples == [(logger.name, level, message)]
    assert capsys.readouterr().err == ""


def test_a_fault_of_this_package_passes_through_the_log(caplog):
    with pytest.raises(ZeroDivisionError), report_to(logging.getLogger("pydlshogi.test_program")):
        raise ZeroDivisionError
    assert not caplog.records


@pytest.mark.parametrize("name, status", [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_ends_a_program_as_ctrl_c_does(capsys, name, status):
    if not hasattr(signal, name):
        pytest.skip("this system has no such signal")
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_DFL)  # whoever started the tests may ignore it

    @program("tool")
    def main(argv=None):
        signal.raise_signal(number)
        threading.Event().wait(60)

    try:
        assert main() == status
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert capsys.readouterr().err == "tool: interrupted.\n"


def test_a_signal_that_is_ignored_stays_ignored():
    ignored = signal.SIGHUP if hasattr(signal, "SIGHUP") else signal.SIGTERM
    before = signal.signal(ignored, signal.SIG_IGN)

    @program("tool")
    def main(argv=None):
        signal.raise_signal(ignored)
        return 7

    try:
        assert main() == 7
    finally:
        signal.signal(ignored, before)


def test_a_program_runs_outside_the_main_thread():
    statuses = []
    main = program("tool")(lambda argv=None: 7)
    thread = threading.Thread(target=lambda: statuses.append(main()))
    thread.start()
    thread.join(60)
    assert statuses == [7]


def run(code, *options, environment=None, **streams):
    """Runs a program whose ``main`` has this body."""
    text = (
        "import os, sys\n"
        "from pydlshogi.commands.program import program\n"
        "@program('tool')\n"
        f"def main(argv=None):\n    {code}\n    return 0\n"
        "sys.exit(main())\n"
    )
    environment = {**os.environ, **(environment or {})}
    environment.pop("PYTHONUNBUFFERED", None)
    return subprocess.run(
        [sys.executable, *options, "-c", text],
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
        **streams,
    )


@pytest.fixture
def closed_pipe():
    """The write end of a pipe that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


@pytest.mark.skipif(os.name == "nt", reason="a closed pipe is another error on Windows")
@pytest.mark.parametrize("options", [(), ("-u",)])
@pytest.mark.parametrize("code", ["print('x')", "print('x' * 100000)", "sys.exit(print('x'))"])
def test_a_closed_standard_output_ends_quietly(closed_pipe, options, code):
    result = run(code, *options, stdout=closed_pipe)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.skipif(os.name == "nt", reason="a closed pipe is another error on Windows")
def test_an_error_is_told_although_standard_output_is_closed(closed_pipe):
    code = "from pydlshogi.errors import UserError; print('x'); raise UserError('a is empty.')"
    result = run(code, stdout=closed_pipe)
    assert (result.returncode, result.stderr) == (1, "tool: error: a is empty.\n")


@pytest.mark.skipif(os.name == "nt", reason="a closed pipe is another error on Windows")
def test_another_closed_pipe_is_an_error():
    code = "a, b = os.pipe(); os.close(a); os.write(b, b'x')"
    result = run(code, stdout=subprocess.DEVNULL)
    assert (result.returncode, result.stderr) == (1, "tool: error: Broken pipe.\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full device")
def test_a_full_disk_behind_standard_output_is_an_error():
    with open("/dev/full", "w") as full:
        result = run("print('x')", stdout=full)
    assert result.returncode == 1
    assert result.stderr == "tool: error: standard output: No space left on device.\n"


@pytest.mark.parametrize("encoding", ["cp1252", "cp932", "ascii", "utf-8"])
@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_a_character_that_standard_output_lacks_does_not_end_a_program(encoding, errors):
    name = "羽生善治 \u00e9 \udc81"  # the last one: a byte of a file name that is no text
    code = f"print({ascii(name)}); print('after')"
    environment = {"PYTHONIOENCODING": f"{encoding}:{errors}", "PYTHONUTF8": "0"}
    result = run(code, environment=environment, stdout=subprocess.PIPE, encoding="latin-1")
    assert (result.returncode, result.stderr) == (0, "")
    shown, after = result.stdout.splitlines()
    assert (shown.encode("latin-1"), after) == (name.encode(encoding, "backslashreplace"), "after")


def test_a_choice_of_the_user_for_such_characters_is_kept():
    environment = {"PYTHONIOENCODING": "ascii:replace"}
    result = run("print('\u7fbd')", environment=environment, stdout=subprocess.PIPE)
    assert (result.returncode, result.stdout) == (0, "?\n")


def test_a_player_whose_name_cannot_be_shown_is_searched_for_all_the_same(tmp_path):
    script = Path(__file__).resolve().parents[2] / "utils" / "filter_csa.py"
    (tmp_path / "games").mkdir()
    (tmp_path / "games" / "a.csa").write_text("V2.2\nN+a\nN-b\nPI\n+\n+7776FU\n%TORYO\n")
    result = subprocess.run(
        [sys.executable, script, "games", "--player", "羽生善治", "--min_rating", "0"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in result.stderr
    assert r"\u7fbd\u751f\u5584\u6cbb" in result.stdout


@pytest.mark.skipif(os.name == "nt", reason="Windows starts programs with all three files")
def test_a_program_without_standard_error_still_returns_its_status():
    result = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -c "$1" >&- 2>&-', sys.executable]
        + [
            "import sys; from pydlshogi.commands.program import program\n"
            "@program('tool')\ndef main(argv=None): open('/no/such/file')\n"
            "sys.exit(main())"
        ]
    )
    assert result.returncode == 1
