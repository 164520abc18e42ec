"""The .bat files, read as cmd reads them, since the tests seldom run on Windows."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "bat").glob("*.bat"))
STARTED_BY_CLICK = ["setup.bat", "train.bat", "play.bat", "gpu.bat"]
every_file = pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])

#: Variables that Windows sets.
KNOWN = {"CD", "TEMP", "RANDOM", "TIME"}

#: Labels that are also reached from the line above.
GOES_ON = {":start", ":new", ":install", ":ready", ":finished", ":run"}

QUOTED = re.compile(r'"[^"]*"')


def lines(path):
    """Gives the commands of a file, without comments."""
    text = path.read_bytes().decode("ascii")
    return [line for line in text.split("\r\n") if line and not line.startswith("rem ")]


def unquoted(line):
    return QUOTED.sub('""', line)


def test_the_files_of_the_readme_are_there():
    names = {path.name for path in FILES}
    assert {*STARTED_BY_CLICK, "train_value.bat", "policy_player.bat"} <= names


@every_file
def test_the_text_is_ascii_with_windows_line_ends(path):
    data = path.read_bytes()
    assert data.isascii() and data.endswith(b"\r\n")
    assert data.count(b"\r\n") == data.count(b"\n") == data.count(b"\r")
    assert not any(line.endswith((" ", "\t")) for line in data.decode().split("\r\n"))


@every_file
def test_a_file_is_silent_and_keeps_its_variables_to_itself(path):
    first, *rest = lines(path)
    assert first == "@echo off"
    assert rest[0] == "setlocal"
    # cmd cannot go to a folder of the network.
    assert rest[1] in ('cd /d "%~dp0.." || goto failed', 'cd /d "%~dp0" || exit /b 1')
    assert not any("EnableDelayedExpansion".lower() in line.lower() for line in rest)


@every_file
def test_another_file_is_called_by_a_relative_path(path):
    """``call`` replaces ``%`` and doubles ``^`` in a path, even in quotation marks."""
    for line in lines(path):
        assert "%~dp0" not in line or "call " not in line, line


@every_file
def test_quotes_and_parentheses_are_balanced_on_each_line(path):
    for line in lines(path):
        assert line.count('"') % 2 == 0, line
        bare = unquoted(line)
        assert bare.count("(") == bare.count(")"), line
        # A block of several lines would replace its variables before it runs.
        assert not bare.rstrip().endswith("("), line


@every_file
def test_paths_from_outside_are_quoted(path):
    for line in lines(path):
        # Also in an echo: cmd runs what follows a & in a name such as R&D.
        assert not re.search(r"%(~dp0|(CD|TEMP|LOG|MODEL)%)", unquoted(line)), line


@every_file
def test_each_percent_sign_belongs_to_a_known_variable(path):
    known = set(KNOWN)
    for line in lines(path):
        known |= set(re.findall(r'set "(\w+)=', line))
    for line in lines(path):
        rest = re.sub(r"%%[A-Z]|%~dp0|%~1|%\*", "", line)
        variable = r"%(\w+)(?::~-\d)?%"  # perhaps only its last characters
        for name in re.findall(variable, rest):
            assert name in known, line
        assert "%" not in re.sub(variable, "", rest), line


@every_file
def test_variables_are_set_with_quotes_around(path):
    for line in lines(path):
        if line.startswith("echo "):
            continue
        assert len(re.findall(r"\bset ", line)) == len(re.findall(r'\bset "\w+=[^"]*"', line)), line


@every_file
def test_every_label_exists_and_is_used(path):
    text = lines(path)
    labels = [line[1:] for line in text if line.startswith(":")]
    used = {name for line in text for name in re.findall(r"\b(?:goto|call) :?(\w+)", line)}
    used -= {name for line in text for name in re.findall(r"\bcall (\w+)", line)}
    assert len(set(labels)) == len(labels)
    assert set(labels) == used


@every_file
def test_no_text_is_taken_for_an_operator(path):
    for line in lines(path):
        bare = unquoted(line)
        if re.match(r"(if .* )?echo ", bare):
            assert not re.search(r"[<>|&^!]", bare), line
        rest = re.sub(r'2?>>?(nul|"")| 2>&1|\|\| |&& ', "", bare)
        assert not re.search(r"[<>|&^!]", rest), line


@pytest.mark.parametrize("name", STARTED_BY_CLICK)
def test_a_click_leaves_the_window_open_and_a_status(name):
    text = lines(ROOT / "bat" / name)
    ends = [index for index, line in enumerate(text) if line.startswith("exit /b ")]
    assert text[-1] == text[ends[-1]]
    for index in ends:
        asks = text[index - 1].endswith("pause")
        assert asks or {":try", ":ready"} & {*text[:index]}, text[index - 1]
    # No label is reached from above by accident, but where the text goes on there.
    for index, line in enumerate(text):
        if line.startswith(":") and line not in GOES_ON:
            assert text[index - 1].startswith("exit /b "), line


@every_file
def test_the_files_that_a_bat_file_names_exist(path):
    start = "bat" if 'cd /d "%~dp0" || exit /b 1' in lines(path) else "."
    for line in lines(path):
        for name in re.findall(r"[\w.\\]+\.(?:py|bat|txt)\b", line.replace("%~dp0", "bat\\")):
            parts = name.split("\\")
            if line.startswith("echo ") or "run" not in parts:
                folder = ROOT if parts[0] in ("bat", "run") else ROOT / start
                assert parts[0] == "run" or folder.joinpath(*parts).exists(), line


def test_windows_trains_by_the_program_of_make_train():
    makefile = (ROOT / "Makefile").read_text()
    for file, options in (("train.bat", "train_kifu %*"), ("train_value.bat", "--recipe value %*")):
        assert options in (ROOT / "bat" / file).read_text()
        assert options.split()[0] in makefile
    setup = (ROOT / "bat" / "setup.bat").read_text()
    for packages in ("plot", "search", "openvino"):
        assert re.search(rf'-e "\.\[{packages}.*?\]"', makefile)[0] in setup


def test_an_interrupted_training_names_train_bat_as_make_train_names_itself():
    text = lines(ROOT / "bat" / "train.bat")
    command = text.index(r'set "PYDLSHOGI_CONTINUE=bat\train.bat with the same arguments"')
    assert command < next(i for i, line in enumerate(text) if "train_kifu" in line)


@pytest.fixture
def wine(tmp_path):
    """Runs a .bat file of a copied clone by Wine's cmd; its Python only prints its arguments."""
    program = shutil.which("wine64") or shutil.which("wine")
    if not program:
        pytest.skip("Wine is not installed")
    clone = tmp_path / "a clone"
    shutil.copytree(ROOT / "bat", clone / "bat")
    environment = {
        "HOME": str(tmp_path),
        "WINEPREFIX": str(tmp_path / "wine"),
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "mscoree,mshtml=",
        "PATH": "/usr/lib/wine:/usr/bin:/bin",
    }

    def run(name, *arguments):
        return subprocess.run(
            [program, "cmd", "/c", f"bat\\{name}", *arguments],
            cwd=clone,
            env=environment,
            input="\n",
            capture_output=True,
            text=True,
            timeout=300,
        )

    run.clone = clone
    return run


@pytest.mark.slow
def test_under_wine_setup_says_that_python_is_missing(wine):
    result = wine("setup.bat", "nopause")
    assert "Python 3.9 to 3.14 was not found" in result.stdout
    assert result.returncode == 1
    assert not (wine.clone / ".venv").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["train.bat", "play.bat"])
def test_under_wine_what_needs_python_ends_with_the_sentence_of_setup(wine, name):
    result = wine(name)
    assert "Python 3.9 to 3.14 was not found" in result.stdout
    assert result.returncode == 1


@pytest.mark.slow
def test_under_wine_an_environment_whose_python_does_not_start_is_made_anew(wine):
    (wine.clone / ".venv" / "bin").mkdir(parents=True)
    (wine.clone / ".venv" / ".for-train").touch()
    result = wine("train.bat")
    assert "The Python of .venv does not start" in result.stdout
    assert "Python 3.9 to 3.14 was not found" in result.stdout
    assert not (wine.clone / ".venv").exists()
    assert result.returncode == 1
