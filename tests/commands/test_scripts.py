"""The front door and the scripts of the clone start from any folder, and in any Python."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pydlshogi import launch

ROOT = Path(__file__).resolve().parents[2]
#: The scripts of the clone. Other files beside them are the user's.
SCRIPTS = [
    Path(folder, f"{name}.py")
    for folder, names in (
        ("", "train_policy train_value train_policy_value train_policy_value_resnet"),
        ("", "mcts_player_usi policy_player_usi search1_player_usi"),
        ("utils", "plot_log make_kifu_list filter_csa transfer_policy_to_value"),
    )
    for name in names.split()
]
NAMES = [str(path) for path in SCRIPTS]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")

#: All of a script but its docstring; ``{}`` is the folder of the clone.
SHAPE = """

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, {})
    from pydlshogi.launch import launch

    launch(__file__)
"""

POSIX_ONLY = pytest.mark.skipif(os.name == "nt", reason="uses a shell script as Python")


def run(command, **options):
    """Runs a command without the variables that would lead it to this clone."""
    environment = {**os.environ, **options.pop("environment", {})}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(
        [str(word) for word in command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


@pytest.fixture
def clone(tmp_path):
    """A clone with its scripts and the part of the package that starts them, without .venv."""
    folder = tmp_path / "a clone"
    files = ("__init__.py", "__main__.py", "launch.py")
    for path in [*SCRIPTS, *(Path("pydlshogi", file) for file in files), Path("pyproject.toml")]:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    return folder


@pytest.fixture
def make_venv(clone):
    """Makes a .venv in that clone whose Python is a shell script; returns the script."""

    def make(text):
        python = clone / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f"#!/bin/sh\n{text}\n")
        python.chmod(0o755)
        return python

    return make


def front_door(*words, python=(sys.executable,), **options):
    """Runs ``python -m pydlshogi`` with a clone as the current folder or in PYTHONPATH."""
    return run([*python, "-m", "pydlshogi", *words], **options)


def test_the_front_door_lists_every_program_once():
    result = front_door(cwd=ROOT)
    assert (result.returncode, result.stderr) == (0, "")
    listed = re.findall(r"^  (\w+)  +\w.{10,}$", result.stdout, re.M)
    assert tuple(listed) == launch.NAMES and len(set(listed)) == len(listed)
    assert max(map(len, result.stdout.splitlines())) <= 100
    for option in ("-h", "--help"):
        assert front_door(option, cwd=ROOT).stdout == result.stdout


def test_every_program_is_in_the_list():
    modules = (ROOT / "pydlshogi" / "commands").glob("*.py")
    mains = re.compile(r"^(?:def main\(|main = )", re.M)
    programs = [path.stem for path in modules if mains.search(path.read_text(encoding="utf-8"))]
    assert sorted(launch.NAMES) == sorted(programs)
    assert {path.stem for path in SCRIPTS} <= set(launch.NAMES)


@pytest.mark.parametrize("name", launch.NAMES)
def test_the_front_door_runs_every_program(name):
    result = front_door(name, "--help", cwd=ROOT)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"usage: {name} ")


def test_the_front_door_passes_arguments_and_the_status_on():
    result = front_door("match", "--games", "x", cwd=ROOT)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("match: error: argument --games: ")


@pytest.mark.parametrize(
    "wrong, hint",
    [
        ("mach", " Perhaps you mean match."),
        ("train-policy", " Perhaps you mean train_policy or "),
        ("plot_log.py", " Perhaps you mean plot_log."),
        ("xyz", ""),
        ("program", ""),  # a module beside the programs
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest_names(wrong, hint):
    result = front_door(wrong, cwd=ROOT)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"pydlshogi: error: there is no program {wrong}.{hint}")
    assert result.stderr.endswith(" python -m pydlshogi lists all programs.\n")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("module", [".match", ".train_policy", ""])
def test_a_module_of_commands_says_how_to_start_its_program(module):
    command = [sys.executable, "-m", f"pydlshogi.commands{module}", "--help"]
    result = run(command, cwd=ROOT)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "pydlshogi: error: start a program by: python -m pydlshogi NAME (without NAME: a list)\n"
    )


def test_without_packages_the_front_door_lists_and_says_how_to_get_them(clone):
    no_packages = {"python": (sys.executable, "-S"), "cwd": clone}
    assert "train_policy" in front_door(**no_packages).stdout
    result = front_door("match", "--help", **no_packages)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"match: error: This Python ({sys.executable}, version ")
    assert result.stderr.endswith("It makes .venv, which this program then uses.\n")


def test_an_installed_copy_without_packages_names_pip(clone):
    (clone / "pyproject.toml").unlink()
    result = front_door("match", python=(sys.executable, "-S"), cwd=clone)
    assert result.returncode == 1
    assert result.stderr.endswith(" Install pydlshogi with pip in another Python.\n")


@POSIX_ONLY
def test_without_packages_the_front_door_goes_over_to_the_clones_venv(clone, make_venv):
    make_venv('printf "%s\\n" "$PYDLSHOGI_VENV" "$@"')
    result = front_door("match", "a b", "--help", python=(sys.executable, "-S"), cwd=clone)
    assert (result.returncode, result.stderr) == (0, "")
    venv = str(clone / ".venv")
    assert result.stdout.splitlines() == [venv, "-m", "pydlshogi", "match", "a b", "--help"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no mark of programs")
@pytest.mark.parametrize("name", NAMES)
def test_a_script_that_names_its_python_is_executable(name):
    assert (ROOT / name).read_text(encoding="utf-8").startswith("#!/usr/bin/env python3\n")
    assert os.access(ROOT / name, os.X_OK)


@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_all_scripts_have_one_shape(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    folder = "os.path.realpath(__file__)"
    for _ in path.parts:
        folder = f"os.path.dirname({folder})"
    docstring = ast.get_docstring(ast.parse(text))
    assert docstring and "\n" not in docstring
    assert text == f'#!/usr/bin/env python3\n"""{docstring}"""{SHAPE.format(folder)}'
    assert text.isascii()  # for Python 2.7


@pytest.mark.long
@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_each_script_answers_help_from_another_folder(path, tmp_path):
    result = run([sys.executable, ROOT / path, "--help"], cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"usage: {path.stem} ")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_a_link_to_a_script_starts_it(tmp_path):
    (tmp_path / "other name.py").symlink_to(ROOT / "utils" / "plot_log.py")
    result = run([sys.executable, tmp_path / "other name.py", "--help"], cwd=tmp_path)
    assert result.returncode == 0, result.stderr


def test_a_renamed_script_ends_with_one_sentence(tmp_path):
    text = (ROOT / "utils" / "plot_log.py").read_text(encoding="utf-8")
    (tmp_path / "other.py").write_text(
        text.replace("os.path.dirname(os.path.realpath(__file__))", repr(str(ROOT))),
        encoding="utf-8",
    )
    result = run([sys.executable, tmp_path / "other.py", "--help"], cwd=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("other: error: The name of the file says which program")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_without_packages_each_script_ends_with_one_sentence(path, clone, tmp_path):
    result = run([sys.executable, "-S", clone / path, "--help"], cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr.startswith(f"{path.stem}: error: This Python ({sys.executable}, version ")
    assert "lacks: chainer, filelock, numpy, shogi, threadpoolctl, tqdm. Run " in result.stderr
    assert result.stderr.count("\n") == 1
    said = [f"info string {result.stderr.partition('error: ')[2]}"]
    assert result.stdout.splitlines(True) == (said if path.stem.endswith("_usi") else [])


def test_a_gui_is_told_in_ascii_what_the_encoding_lacks(clone):
    folder = clone.rename(clone.with_name("将棋"))
    code = {"PYTHONIOENCODING": "cp1252"}
    result = run([sys.executable, "-S", folder / "policy_player_usi.py"], environment=code)
    assert result.returncode == 1
    assert result.stdout.startswith("info string This Python ")
    assert "\\u5c06\\u68cb" in result.stdout
    assert "Traceback" not in result.stderr


@POSIX_ONLY
@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_without_packages_each_script_goes_over_to_the_clones_venv(
    path, clone, make_venv, tmp_path
):
    make_venv('printf "%s\\n" "$PYDLSHOGI_VENV" "$@"')
    result = run([sys.executable, "-S", clone / path, "a b", "--help"], cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        str(clone / ".venv"),
        str(clone / path),
        "a b",
        "--help",
    ]


@POSIX_ONLY
def test_a_script_goes_over_once(clone, make_venv):
    python = make_venv(f'echo started\nexec "{sys.executable}" -S "$@"')
    result = run([python, clone / "train_policy.py"])
    assert result.returncode == 1
    assert result.stdout.count("started") == 2
    assert "lacks: chainer" in result.stderr and "Remove the folder" in result.stderr
    assert result.stderr.count("\n") == 1


@POSIX_ONLY
def test_a_program_that_went_over_starts_scripts_that_go_over_too(clone, make_venv):
    # The first line of an engine's script names a Python without packages.
    commands = clone / "pydlshogi" / "commands"
    commands.mkdir()
    (commands / "__init__.py").touch()
    (commands / "match.py").write_text(
        "import subprocess, sys\n"
        f"def main(): return subprocess.call([{sys.executable!r}, '-S', "
        f"{str(clone / 'policy_player_usi.py')!r}])\n"
    )
    (commands / "policy_player_usi.py").write_text("def main(): return print('engine') or 5\n")
    make_venv(f'exec "{sys.executable}" "$@"')
    result = front_door("match", python=(sys.executable, "-S"), cwd=clone)
    assert (result.returncode, result.stdout, result.stderr) == (5, "engine\n", "")


@POSIX_ONLY
@pytest.mark.parametrize("fault", ["not executable", "missing", "broken link", "no interpreter"])
def test_a_venv_that_cannot_be_started_gives_one_sentence(clone, make_venv, fault):
    python = make_venv("exit 0")
    if fault == "not executable":
        python.chmod(0o644)
    elif fault == "no interpreter":
        python.write_text("#!/no/such/python\n")
    else:
        python.unlink()
        if fault == "broken link":
            python.symlink_to("/no/such/python")
    result = run([sys.executable, "-S", clone / "utils" / "plot_log.py", "log.txt"])
    assert result.returncode == 1
    assert result.stderr.startswith("plot_log: error: The Python of this clone cannot be started: ")
    reason = "Permission denied" if fault == "not executable" else "No such file or directory"
    assert f"{python}: {reason}. Make it executable" in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_packages_looked_for_are_those_that_are_installed():
    section = PYPROJECT.partition("\ndependencies = [\n")[2].partition("]")[0]
    names = re.findall(r'^ +"([\w-]+)', section, re.M)
    assert sorted("shogi" if name == "python-shogi" else name for name in names) == [*launch.NEEDED]


@pytest.mark.parametrize("name", launch.NEEDED)
def test_one_missing_package_is_enough(name, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda found: None if found == name else 1)
    assert launch._problem().endswith(f"lacks: {name}.")


def test_this_python_has_no_problem():
    assert launch._problem() == ""


def test_a_python_that_is_too_old_is_named(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 8, 18, "final", 0))
    assert launch._problem().endswith("version 3.8.18) is older than 3.9.")


def find_python(version):
    """Returns a Python of a version; skips the test if there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [*pyenv.glob(f"versions/{version}.*/bin/python"), shutil.which(f"python{version}")]
    for python in filter(None, found):
        if run([python, "-c", ""]).returncode == 0:  # one of pyenv's shims may lead nowhere
            return python
    pytest.skip(f"Python {version} is not installed")


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.8"])
def test_an_old_python_gives_one_sentence(version, clone):
    python = find_python(version)
    result = front_door("match", "--help", python=[python], cwd=clone)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("match: error: This Python (")
    assert "is older than 3.9. Run " in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["__init__.py", "__main__.py", "launch.py"])
def test_what_an_old_python_reads_uses_no_newer_syntax(name):
    text = (ROOT / "pydlshogi" / name).read_bytes().decode("ascii")
    for node in ast.walk(ast.parse(text)):
        assert not isinstance(node, (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Await))
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None
            assert all(arg.annotation is None for arg in node.args.args)
        if isinstance(node, ast.ImportFrom):
            assert node.module != "__future__"


def test_on_windows_the_script_waits_for_the_other_python(monkeypatch):
    started = []

    class Process:
        interrupts = [KeyboardInterrupt, KeyboardInterrupt]

        def __init__(self, command):
            started.extend(command)

        def wait(self):
            if self.interrupts:
                raise self.interrupts.pop()
            return 7

    monkeypatch.setattr(launch, "_ON_WINDOWS", True)
    monkeypatch.setattr(launch.subprocess, "Popen", Process)
    monkeypatch.setattr(sys, "argv", ["x", "--help"])
    monkeypatch.setenv(launch.GONE_OVER, "")
    assert launch._go_over("match", ["-m", "pydlshogi", "match"]) == 7
    python = os.path.join(launch.VENV, "Scripts", "python.exe")
    assert started == [python, "-m", "pydlshogi", "match", "--help"]


def test_an_interruption_of_the_import_has_the_status_of_ctrl_c(monkeypatch):
    def interrupt(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(launch.importlib, "import_module", interrupt)
    assert launch._run("match") == 130


def test_each_installed_program_is_one_of_commands():
    section = PYPROJECT.partition("[project.scripts]\n")[2].partition("\n\n")[0]
    programs = dict(line.split(" = ") for line in section.splitlines())
    for page in ("install.md", "install.ja.md"):
        named = re.findall(r"`(\w+)`", (ROOT / "docs" / page).read_text(encoding="utf-8"))
        assert set(programs) - {"pydlshogi"} <= set(named)
    assert programs.pop("pydlshogi") == '"pydlshogi.launch:main"'
    for name, target in programs.items():
        assert target == f'"pydlshogi.commands.{name}:main"'
        assert name in launch.NAMES
    # GUIs register the engines.
    assert {path.stem for path in SCRIPTS if path.stem.endswith("_usi")} == set(programs)


def test_shell_scripts_keep_their_line_ends_on_windows():
    """Git for Windows would otherwise write CR LF, and the scripts would not run in WSL."""
    attributes = (ROOT / ".gitattributes").read_text()
    for path in (ROOT / ".ci").iterdir():
        if path.read_bytes().startswith((b"#!/bin/sh", b"#!/usr/bin/env bash")):
            assert f"\n.ci/{path.name} text eol=lf\n" in attributes


def test_all_places_name_the_same_versions_of_python():
    first, after = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', PYPROJECT).groups()
    last = int(after) - 1
    every = " ".join(f"3.{minor}" for minor in range(int(first), last + 1))
    assert [*launch.OLDEST] == [3, int(first)]
    condition = f"not (3, {first}) <= sys.version_info < (3, {after})"
    for file, text in (
        ("Makefile", condition),
        ("bat/setup.bat", condition),
        ("bat/setup.bat", f"%%V in ({' '.join(reversed(every.split()))})"),
        (".ci/run", f"in {every};"),
        ("README.md", f"Python 3.{first}–3.{last} "),
        ("README.ja.md", f"Python 3.{first}〜3.{last}で"),
        ("docs/install.md", f"Python 3.{first}–3.{last} "),
        ("docs/install.ja.md", f"Python 3.{first}〜3.{last}と"),
    ):
        assert text in (ROOT / file).read_text(encoding="utf-8"), file


#: Systems by Python's version, sys_platform and platform_machine; whether cshogi has a wheel.
SYSTEMS = {
    ("3.9", "linux", "x86_64"): True,
    ("3.9", "win32", "AMD64"): False,
    ("3.11", "linux", "x86_64"): True,
    ("3.11", "linux", "aarch64"): False,
    ("3.11", "win32", "AMD64"): True,
    ("3.11", "win32", "ARM64"): False,
    ("3.11", "darwin", "x86_64"): False,
    ("3.11", "darwin", "arm64"): False,
    ("3.12", "linux", "x86_64"): True,
    ("3.12", "linux", "aarch64"): False,
    ("3.12", "win32", "AMD64"): True,
    ("3.12", "darwin", "arm64"): False,
    ("3.14", "linux", "x86_64"): True,
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_cshogi_is_installed_only_where_it_has_a_wheel(system):
    section = PYPROJECT.partition("\nsearch = [\n")[2].partition("\n]")[0]
    found = installed(re.findall(r'^ +"(.*)",$', section, re.M), system)
    assert ("cshogi" in found) == (SYSTEMS[system] and system[0] != "3.12")
    assert ("numpy" in found) == (SYSTEMS[system] and system[0] == "3.9")


@pytest.mark.parametrize("system", SYSTEMS)
def test_cshogi_for_python_3_12_is_installed_by_itself(system):
    """Its metadata demands numpy 1, but its wheel works with numpy 2, which CuPy needs."""
    file = "bat/setup.bat" if system[1] == "win32" else "Makefile"
    text = (ROOT / file).read_text(encoding="utf-8")
    found = installed(re.findall(r"cshogi>=[^\"\n]+", text), system)
    assert found == (["cshogi"] if SYSTEMS[system] and system[0] == "3.12" else [])


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_extra_openvino_and_a_fast_board_are_installed_where_they_have_wheels(system):
    """OpenVINO lacks only Windows on ARM; rsshogi also Python 3.9. cshogi takes its place."""
    has_cshogi, is_arm_windows = SYSTEMS[system], system[1:] == ("win32", "ARM64")
    extras = {
        extra: installed(
            re.findall(
                r'"(\w[^"]*)"', PYPROJECT.partition(f"\n{extra} = [")[2].partition("]\n")[0]
            ),
            system,
        )
        for extra in ("openvino", "search")
    }
    assert ("openvino" in extras["openvino"]) == (not is_arm_windows)
    has_rsshogi = "rsshogi" in extras["search"]
    assert has_rsshogi == (
        system[0] != "3.9" and not is_arm_windows and (not has_cshogi or system[0] == "3.12")
    )


def installed(lines, system):
    """Names the packages among requirements that pip installs on a system."""
    requirements = pytest.importorskip("packaging.requirements")
    names = ("python_version", "sys_platform", "platform_machine")
    return [
        requirement.name
        for requirement in map(requirements.Requirement, lines)
        if requirement.marker is None or requirement.marker.evaluate(dict(zip(names, system)))
    ]


@pytest.mark.parametrize("extra", ["match", "test"])
def test_matches_and_tests_need_the_board_of_the_search(extra):
    assert re.search(rf'\n{extra} = \[\s*"pydlshogi\[search\]"', PYPROJECT)


def test_every_folder_with_modules_is_a_package():
    package = ROOT / "pydlshogi"
    folders = {path.parent for path in package.rglob("*.py")}
    assert package / "layers" / "cpu" in folders and package / "commands" in folders
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []
