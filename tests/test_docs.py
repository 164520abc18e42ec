"""The documentation: links, names of commands and options, both languages, runnable code."""

from __future__ import annotations

import ast
import functools
import io
import os
import re
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest
import shogi

import pydlshogi
from pydlshogi.launch import NAMES

ROOT = Path(__file__).resolve().parent.parent

ENGLISH = [
    ROOT / "README.md",
    *sorted(page for page in ROOT.glob("docs/*.md") if ".ja." not in page.name),
]
JAPANESE = [page.with_suffix(".ja.md") for page in ENGLISH]
REPORTS = [
    ROOT / name
    for name in ("model/README.md", "model/HISTORY.md", "benchmarks/RESULTS.md", "kifu/README.md")
]
PAGES = [*ENGLISH, *JAPANESE, *REPORTS]

#: Most lines of a README.
MOST_LINES = 150

#: Most words of all English pages together, and of some pages.
MOST_WORDS_IN_ALL = 31_000
MOST_WORDS = {"model/README.md": 1300, "model/HISTORY.md": 2500, "benchmarks/RESULTS.md": 2800}

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_SCRIPT = re.compile(r"(?<![\w/.-])(?:\./)?((?:(?:utils|benchmarks)/)?\w+\.py)\b")
_PROGRAM = re.compile(r"(?:-m |^)pydlshogi ([a-z]\w*)(?: ([a-z]\w*))?")
_COMMIT = re.compile(r"(?<![\w.-])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?![\w.-])")
_FILE = re.compile(
    r"(?<![\w/])(?:utils|benchmarks|bat|pydlshogi|model|kifu|tests)[/\\]"
    r"[\w./\\]*\.(?:py|bat|md|txt|csa|png)"
)
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")

#: Files that the pages name and that a run creates.
_MADE = ("bat/policy_player.log",)

#: Stands for a file of the reader.
_PLACEHOLDER = "FILE.py"

#: Options of programs that are not ours.
_FOREIGN = {
    "--depth",  # git clone
    "--no-build-isolation",  # pip
    "--mpi-lib-version",  # mpi4py
    *("--host", "--port", "--gamename", "--id", "--password", "--keep-alive", "--options"),
}

#: Subcommands of convert_model.
_KINDS = ("average", "calibrate", "fold_bn", "transfer")

#: Programs whose options the pages must describe completely, and the pages that do so.
_DESCRIBED = {
    "play": ("play",),
    "train_policy": ("training", "recipes", "parallel"),
    "train_kifu": ("training",),
    "match": ("matches",),
    "self_play": ("self-play", "training"),
    "reinforce": ("self-play", "training"),
    "filter_csa": ("data",),
    "make_kifu_list": ("data",),
    "compare_recipes": ("training", "recipes"),
    "evaluate_model": ("training", "recipes"),
    "plot_log": ("training",),
    "convert_model average": ("training", "recipes"),
    "convert_model calibrate": ("training", "recipes"),
    "convert_model fold_bn": ("training", "networks"),
    "convert_model transfer": ("training", "networks"),
    "benchmarks/gpu_check.py": ("gpu",),
    "show_position": ("analysis",),
    "analyze_kifu": ("analysis",),
    "export_onnx": ("onnx",),
    "transfer_policy_to_value": ("networks",),
    "convert_positions": ("data",),
    "make_positions": ("parallel",),
    "fit_eval_scale": ("data", "networks"),
    "make_opening_book": ("playing",),
    "policy_player_usi": ("playing",),
    "search1_player_usi": ("playing",),
    "mcts_player_usi": ("playing",),
}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """The page without its code blocks."""
    return _FENCE.sub("", read(page))


def blocks(page: Path, *languages: str) -> list[str]:
    """The code blocks of a page, those of some languages if any are named."""
    found = _FENCE.findall(read(page))
    return [code for language, code in found if not languages or language in languages]


def headings(page: Path) -> list[tuple[int, str]]:
    """Level and text of each heading."""
    lines = prose(page).splitlines()
    found = (re.match(r"(#+) (.+)", line) for line in lines)
    return [(len(match[1]), match[2]) for match in found if match]


def anchors(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them of its headings."""
    made: dict[str, int] = {}
    for _, text in headings(page):
        plain = _LINK.sub("", text).lower().replace(" ", "-")
        anchor = "".join(c for c in plain if c.isalnum() or c in "-_")
        made[anchor] = made.get(anchor, -1) + 1
        if made[anchor]:
            made[f"{anchor}-{made[anchor]}"] = 0
    return set(made)


@functools.cache
def help_of(program: str) -> str:
    """What a program prints for --help.

    Args:
        program: The words after ``python -m pydlshogi``, or the path of a script.
    """
    start = [str(ROOT / program)] if program.endswith(".py") else ["-m", "pydlshogi"]
    words = [] if program.endswith(".py") else program.split()
    arguments = [sys.executable, *start, *words, "--help"]
    result = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT, env=environment())
    assert result.returncode == 0, result.stderr
    return result.stdout


def options_of(program: str) -> set[str]:
    return set(_OPTION.findall(help_of(program)))


def environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}


def scripts() -> list[str]:
    """The scripts that take options: those of the programs, and those that measure."""
    own = [ROOT / folder / f"{program}.py" for folder in ("", "utils") for program in NAMES]
    helpers = {
        "sides.py",
        "openblas.py",
        "gpu_worker.py",
        "network_worker.py",
        "overhead_worker.py",
    }
    others = [path for path in ROOT.glob("benchmarks/*.py") if path.name not in helpers]
    return sorted(name(path) for path in own + others if path.exists())


def programs() -> list[str]:
    """All that takes options: programs of the package, subcommands, scripts that measure."""
    subcommands = [f"convert_model {kind}" for kind in _KINDS]
    measuring = [script for script in scripts() if script.startswith("benchmarks/")]
    return [*NAMES, *subcommands, *measuring]


def started(line: str) -> tuple[str, str]:
    """The program that a command line starts, and what follows; two empty strings if none."""
    match = _PROGRAM.search(line)
    if match:
        several = match[1] == "convert_model" and match[2]
        return f"{match[1]} {match[2]}" if several else match[1], line[match.end(1) :]
    script = next((s for s in _SCRIPT.findall(line) if s in scripts()), "")
    is_start = script and "python " in line.partition(script)[0]
    return (script, line.partition(script)[2]) if is_start else ("", "")


def command_lines(page: Path) -> list[str]:
    """The lines of a page's shell blocks and inline code, continued lines joined."""
    shell = "\n".join(blocks(page, "sh")).replace("\\\n", " ")
    return [*shell.splitlines(), *_CODE.findall(prose(page))]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_relative_links_lead_to_files_and_anchors_that_exist(page: Path) -> None:
    for target in _LINK.findall(prose(page)):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_scripts_and_files_that_a_page_names_exist(page: Path) -> None:
    for line in command_lines(page):
        for script in _SCRIPT.findall(line):
            places = [ROOT / script] + [ROOT / folder / script for folder in ("utils", "tests")]
            if script == _PLACEHOLDER:
                continue
            made = {block.split("\n", 1)[0] for block in blocks(page, "python")}
            assert f"# {script}" in made or any(place.exists() for place in places), line
        for file in _FILE.findall(line):
            path = file.replace("\\", "/")
            assert path in _MADE or (ROOT / path).exists(), line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_make_targets_that_a_page_names_exist(page: Path) -> None:
    makefile = read(ROOT / "Makefile")
    for line in command_lines(page):
        for target in re.findall(r"(?:^|\s)make ([a-z][\w-]*)", line, re.ASCII):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_modules_that_a_page_starts_or_names_exist(page: Path) -> None:
    for line in command_lines(page):
        for module in re.findall(r"\bpydlshogi(?:\.[a-z]\w*)+", line):
            path = ROOT / module.replace(".", "/")
            is_file = (ROOT / module).is_file()  # pydlshogi.pth
            is_file = is_file or module.split(".")[1] in pydlshogi.__all__
            assert is_file or path.is_dir() or path.with_suffix(".py").exists(), line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_options_in_commands_are_options_of_the_program(page: Path) -> None:
    for line in command_lines(page):
        program, arguments = started(line)
        if program:
            given = set(_OPTION.findall(arguments.partition(" #")[0]))
            assert given <= options_of(program), line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_programs_that_a_page_starts_exist(page: Path) -> None:
    for line in command_lines(page):
        for match in _PROGRAM.finditer(line):
            assert match[1] in NAMES, line


def test_the_list_of_programs_is_that_of_the_front_door() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "pydlshogi"], capture_output=True, text=True, env=environment()
    )
    assert listed.returncode == 0, listed.stderr
    assert set(re.findall(r"^  ([a-z]\w+)  ", listed.stdout, re.M)) == set(NAMES)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pages_name_no_commits(page: Path) -> None:
    assert not _COMMIT.findall(read(page))
    assert "git show" not in read(page)


def words(page: Path) -> int:
    return len(read(page).split())


@pytest.mark.parametrize("page", MOST_WORDS)
def test_a_report_is_short(page: str) -> None:
    assert words(ROOT / page) <= MOST_WORDS[page]


def test_the_english_pages_are_short_together() -> None:
    assert sum(map(words, [*ENGLISH, *REPORTS])) <= MOST_WORDS_IN_ALL


@pytest.mark.parametrize("page", ["model/README.md", "benchmarks/RESULTS.md"])
def test_a_report_begins_with_a_table_of_conclusions(page: str) -> None:
    lines = read(ROOT / page).splitlines()
    assert any(line.startswith("|") for line in lines[:10])


@pytest.mark.parametrize("page", [*ENGLISH, *JAPANESE], ids=name)
def test_options_in_the_prose_exist(page: Path) -> None:
    known = set().union(*map(options_of, programs()), _FOREIGN)
    for code in _CODE.findall(prose(page)):
        assert set(_OPTION.findall(code)) <= known, code


@pytest.mark.parametrize("program", _DESCRIBED)
@pytest.mark.parametrize("suffix", [".md", ".ja.md"])
def test_the_pages_describe_every_option_of_a_program(program: str, suffix: str) -> None:
    text = "".join(read(ROOT / f"docs/{page}{suffix}") for page in _DESCRIBED[program])
    assert options_of(program) - {"--help"} <= set(_OPTION.findall(text))


def test_every_program_is_described() -> None:
    alike = {n for n in NAMES if n.startswith("train_")} | {"convert_model"}
    assert set(NAMES) - alike <= set(_DESCRIBED)


@pytest.mark.parametrize("page", ENGLISH, ids=name)
def test_both_languages_have_the_same_headings(page: Path) -> None:
    levels = [level for level, _ in headings(page)]
    assert levels == [level for level, _ in headings(page.with_suffix(".ja.md"))]
    assert levels.count(1) == 1


@pytest.mark.parametrize("page", ENGLISH, ids=name)
def test_both_languages_have_the_same_code(page: Path) -> None:
    english, japanese = (_FENCE.findall(read(p)) for p in (page, page.with_suffix(".ja.md")))
    assert [without_comments(*block) for block in english] == [
        without_comments(*block) for block in japanese
    ]


@pytest.mark.parametrize("page", ENGLISH, ids=name)
def test_both_languages_have_tables_of_the_same_figures(page: Path) -> None:
    english, japanese = (table_shapes(p) for p in (page, page.with_suffix(".ja.md")))
    assert english == japanese


def test_modules_import_only_from_the_levels_below_as_contributing_shows() -> None:
    (levels,) = blocks(ROOT / "docs/contributing.md", "text")
    level = {room: n for n, line in enumerate(levels.splitlines()) for room in line.split()}
    package = ROOT / "pydlshogi"
    rooms = {path.stem for path in package.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert set(level) == {room for room in rooms if not room.startswith("__")}
    for file in package.rglob("*.py"):
        room = file.relative_to(package).parts[0].partition(".")[0]
        for imported in imports_of(file) - {room, ""}:
            assert level[imported] > level.get(room, -1), (name(file), imported)


def imports_of(file: Path) -> set[str]:
    """The rooms of the package, or the modules beside them, that a module imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(read(file))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "pydlshogi":
            found |= {f"pydlshogi.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    parts = (module.split(".") for module in found)
    names = {part[1] for part in parts if part[0] == "pydlshogi" and len(part) > 1}
    return {n for n in names if not n.startswith("__")}


@pytest.mark.parametrize("page", ["README.md", "README.ja.md"])
def test_the_readme_is_short(page: str) -> None:
    assert len(read(ROOT / page).splitlines()) <= MOST_LINES


@pytest.mark.parametrize("page", ["README.md", "README.ja.md"])
def test_the_readme_leads_to_every_page(page: str) -> None:
    linked = set(_LINK.findall(prose(ROOT / page)))
    pages = JAPANESE if ".ja." in page else ENGLISH
    assert {name(p) for p in pages if p.parent == ROOT / "docs"} <= linked


@pytest.mark.long
def test_the_table_of_networks_is_complete_and_right() -> None:
    from pydlshogi.network.registry import NETWORKS, make_network

    rows = re.findall(r"^\| `(\w+)` \|.*\| ([\d,]+) \|$", read(ROOT / "docs/networks.md"), re.M)
    assert {network: int(number.replace(",", "")) for network, number in rows} == {
        network: make_network(network).count_params() for network in NETWORKS
    }


def test_every_option_of_an_engine_is_described_with_its_type() -> None:
    from pydlshogi.player.engine_options import mcts_options, policy_options, search1_options

    engines = (policy_options(), search1_options(), mcts_options())
    lines = [line.split() for engine in engines for line in engine.declarations()]
    declared = {(line[2], line[4]) for line in lines}
    for page in ("docs/playing.md", "docs/playing.ja.md"):
        rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", read(ROOT / page), re.M)
        assert declared == set(rows)


def test_every_option_of_the_searching_engine_is_described_with_its_default() -> None:
    from pydlshogi.player.engine_options import mcts_options

    lines = [line.split() for line in mcts_options().declarations()]
    declared = {line[2]: line[6] if len(line) > 6 else "" for line in lines}
    for page in ("docs/playing.md", "docs/playing.ja.md"):
        rows = re.findall(r"^\| `(\w+)` \| \w+ \|([^|]*)\|", read(ROOT / page), re.M)
        first: dict[str, str] = {}  # its table is the first one
        for option, default in rows:
            first.setdefault(option, default.strip("` ").replace("−", "-"))
        for option in declared.keys() - {"Threads"}:  # whose default is that of the machine
            assert first[option] == declared[option].replace("<empty>", ""), option


def python_blocks(page: str) -> list[tuple[str, str]]:
    """File name and text of each Python block; blocks name their file in the first line."""
    found = []
    for number, code in enumerate(blocks(ROOT / page, "python")):
        match = re.match(r"# (\w+\.py)\n", code)
        found.append((match[1] if match else f"block{number}.py", code))
    return found


@pytest.mark.parametrize(
    "page", [f"docs/{name}.md" for name in ("data", "from-the-book", "library", "networks")]
)
def test_python_code_of_a_page_runs(page: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "kifu", tmp_path / "kifu", ignore=shutil.ignore_patterns("*.pickle"))
    for file, code in python_blocks(page):
        (tmp_path / file).write_text(code, encoding="utf-8")
        run_script(tmp_path / file)


@pytest.mark.long
@pytest.mark.parametrize("player", [file for file, _ in python_blocks("docs/write-a-player.md")])
def test_the_players_of_the_page_play_a_game(player: str, tmp_path: Path) -> None:
    for file, code in python_blocks("docs/write-a-player.md"):
        (tmp_path / file).write_text(code, encoding="utf-8")
    board = shogi.Board()
    positions = ["startpos", "startpos moves 7g7f 3c3d", f"sfen {board.sfen()} moves 7g7f"]
    dialogue = ["usi", "isready", "usinewgame"]
    for position in positions:
        dialogue += [f"position {position}", "go btime 0 wtime 0 byoyomi 1000"]
    answers = talk([player], dialogue, len(positions), tmp_path)
    assert answers[0] == f"id name {player[:-3]}"
    assert answers.count("usiok") == answers.count("readyok") == 1
    moves = [line.split()[1] for line in answers if line.startswith("bestmove ")]
    assert len(moves) == len(positions)
    for position, move in zip(positions, moves):
        board = shogi.Board()
        for played in position.partition(" moves ")[2].split():
            board.push_usi(played)
        assert shogi.Move.from_usi(move) in board.legal_moves


def test_the_modelfile_of_the_page_may_have_spaces(tmp_path: Path) -> None:
    for file, code in python_blocks("docs/write-a-player.md"):
        (tmp_path / file).write_text(code, encoding="utf-8")
    model = tmp_path / "my model"
    model.write_bytes((ROOT / "model/model_policy").read_bytes())
    option = f"setoption name modelfile value {model}"
    dialogue = ["usi", option, "isready", "position startpos", "go"]
    answers = talk(["network_player.py"], dialogue, 1, tmp_path)
    assert "readyok" in answers
    assert answers[-1].startswith("bestmove ")


@pytest.mark.long
def test_the_onnx_code_of_the_page_runs(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    ((file, code),) = python_blocks("docs/onnx.md")
    (tmp_path / file).write_text(code, encoding="utf-8")
    arguments = [str(ROOT / "model/model_policy"), str(tmp_path / "run/model_policy.onnx")]
    command = [sys.executable, "-m", "pydlshogi", "export_onnx", *arguments]
    subprocess.run(command, check=True, capture_output=True, env=environment())
    assert run_script(tmp_path / file).strip() in {"2g2f", "7g7f"}


def test_the_network_of_the_page_is_trained_and_plays(tmp_path: Path) -> None:
    ((file, code),) = python_blocks("docs/your-own-network.md")
    assert len(code.splitlines()) <= 35
    (tmp_path / file).write_text(code, encoding="utf-8")
    games = sorted((ROOT / "kifu/test").glob("*.csa"))[:2]
    (tmp_path / "list.txt").write_text("".join(f"{game}\n" for game in games), encoding="utf-8")
    lists = ["list.txt", "list.txt"]
    own = ["--network", "my_network.py:MyNetwork"]
    train = [*lists, *own, "--iterations", "2", "--gpu", "-1"]
    files = ["--model", "mine", "--state", "state", "--log", "log"]
    options = ["-b", "4"]
    for program, arguments in (
        ("train_policy", [*train, *files, *options]),
        ("export_onnx", ["mine", "mine.onnx", *own]),
    ):
        command = [sys.executable, "-m", "pydlshogi", program, *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, env=environment())
        assert done.returncode == 0, done.stderr
    dialogue = [
        "usi",
        f"setoption name modelfile value {tmp_path / 'mine'}",
        f"setoption name network_file value {tmp_path / file}",
        "isready",
        "position startpos",
        "go",
    ]
    answers = talk([str(ROOT / "policy_player_usi.py")], dialogue, 1, tmp_path)
    assert any(line.startswith("bestmove ") for line in answers), answers


def talk(script: list[str], dialogue: list[str], moves: int, folder: Path) -> list[str]:
    """Runs an engine and returns its answers; ``quit`` follows the last of its moves."""
    with subprocess.Popen(
        [sys.executable, *script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd=folder,
    ) as engine:
        assert engine.stdin and engine.stdout
        engine.stdin.write("".join(f"{line}\n" for line in dialogue))
        engine.stdin.flush()
        answers = []
        for line in engine.stdout:
            answers.append(line.rstrip("\n"))
            moves -= line.startswith("bestmove ")
            if not moves:
                engine.stdin.write("quit\n")
                engine.stdin.flush()
                moves = -1
    return answers


def run_script(script: Path) -> str:
    """Runs a file as a reader would, in its own folder, and returns its output."""
    result = subprocess.run(
        [sys.executable, script.name],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=script.parent,
        env=environment(),
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def without_comments(language: str, code: str) -> str:
    """The code without what differs between the languages: comments."""
    if language == "python":
        tokens = tokenize.generate_tokens(io.StringIO(code).readline)
        return " ".join(token.string for token in tokens if token.type != tokenize.COMMENT)
    if language == "sh":
        lines = (re.sub(r"(?:^|\s+)#(?!!).*", "", line) for line in code.splitlines())
        return "\n".join(line for line in lines if line)
    return code


def table_shapes(page: Path) -> list[tuple[int, list[str]]]:
    """Number of columns and cells of figures of each row of a page's tables."""
    rows = [line.strip("|").split("|") for line in prose(page).splitlines() if line[:1] == "|"]
    return [
        (len(row), [cell for cell in row if re.fullmatch(r"[\d.,:() −]+", cell)]) for row in rows
    ]
