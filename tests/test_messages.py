"""No message of the library names an option: a caller of a function has no command line."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "pydlshogi"

#: What reads or writes command lines, and declares options.
PROGRAMS = ("commands/", "__main__.py", "launch.py", "training/recipe.py")

MODULES = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if not path.relative_to(PACKAGE).as_posix().startswith(PROGRAMS)
]

# pip has options of its own.
_OPTION = re.compile(r"(?<![\w-])--(?!no-build-isolation)[a-z]")


def texts(tree):
    """The strings of a module that are no docstrings, with their lines."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings:
            yield node.lineno, node.value


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_message_of_the_library_names_an_option(path):
    found = texts(ast.parse(path.read_text(encoding="utf-8")))
    # A text of one word is an argument for another program.
    assert [place for place in found if _OPTION.search(place[1]) and " " in place[1]] == []
