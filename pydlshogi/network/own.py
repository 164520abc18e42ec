"""Networks of users: classes in Python files outside of this package.

A user names the file and the class, ``path/to/file.py:ClassName``. A model file records only
``file:ClassName``, never code or a path. So a program runs such a file only if the user names
it: a model file alone can never make it run anything.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pydlshogi.errors import UserError

if TYPE_CHECKING:
    from pydlshogi.network.network import Network

#: How users name a network in a file, for messages.
FORM = "FILE.py:CLASS"

#: Start of the names of users' modules in this process.
PREFIX = "pydlshogi_own_"

_SPEC = re.compile(r"(.+\.py)(?::(\w+))?", re.DOTALL)

# The classes that users have named, by the names that model files record.
_known: dict[str, type[Network]] = {}


class OwnNetworkError(UserError):
    """A file holds no network that can be used."""


def is_spec(text: str) -> bool:
    """Says whether a text names a file with a network."""
    return _SPEC.fullmatch(text) is not None


def use(spec: str | os.PathLike[str]) -> str:
    """Runs a user's file, ``FILE.py:CLASS``, and makes its network known to this process.

    Without the class, it is the file's only network. The same file and class give the same class as
    before, without running the file again.

    Returns:
        The name of the network in model files, ``file:CLASS``.

    Raises:
        OwnNetworkError: the file cannot be run, or holds no such network.
    """
    match = _SPEC.fullmatch(os.fspath(spec))
    if match is None:
        raise OwnNetworkError(f"{os.fspath(spec)!r} names no network in a file. Write {FORM}.")
    path = Path(match[1]).resolve()
    module = _run(path)
    cls = _class_of(module, path, match[2])
    name = f"{path.stem}:{cls.__name__}"
    if _known.setdefault(name, cls) is not cls:
        raise OwnNetworkError(
            f"two files named {path.name} have a network {cls.__name__}; model files could not "
            "tell them apart. Rename one of them."
        )
    return name


def known_class(name: str) -> type[Network] | None:
    """Returns the class that :func:`use` made known under a name; None for another name."""
    return _known.get(name)


def known_name(cls: type) -> str | None:
    """Returns the name of a class that :func:`use` made known; None for another class."""
    return next((name for name, known in _known.items() if known is cls), None)


def remedy(name: str) -> str:
    """Says how to make a recorded name known; empty if it is no name of a user's network."""
    file, colon, cls = name.partition(":")
    if not colon:
        return ""
    return (
        f"It is the class {cls[:60]} in a file {file[:60]}.py of its author. Name that file with "
        f"the network {FORM}, or in an engine with the option network_file."
    )


_modules: dict[Path, ModuleType] = {}


def _run(path: Path) -> ModuleType:
    """Imports a file once."""
    if path in _modules:
        return _modules[path]
    if not path.is_file():
        raise OwnNetworkError(f"there is no file {path}. Write {FORM}, with the path of the file.")
    # Two files may have the same name.
    name = f"{PREFIX}{len(_modules)}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    # The file may import others of its folder, as if Python ran it.
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        spec.loader.exec_module(module)
    except SystemExit:
        del sys.modules[name]
        raise OwnNetworkError(
            f"the file {path} ends the program when it is imported, for example by sys.exit or by "
            "reading arguments. Move such code below if __name__ == '__main__'."
        ) from None
    except Exception as error:  # whatever the user's code raises
        del sys.modules[name]
        raise OwnNetworkError(
            f"the file {path} cannot be imported: {type(error).__name__}: {error}. Correct it, and "
            f"try it with: python {path}"
        ) from error
    _modules[path] = module
    return module


def _class_of(module: Any, path: Path, name: str | None) -> type[Network]:
    """Finds a network in a module: the one of that name, or the only one."""
    from pydlshogi.network.network import Network

    own = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Network)
        and value.__module__ == module.__name__
    }
    if name is None and len(own) == 1:
        (name,) = own
    if name not in own:
        found = f"Its networks: {', '.join(own)}." if own else "It has none."
        what = f"no network {name}" if name else "not exactly one network"
        raise OwnNetworkError(
            f"the file {path} has {what}: a class that is derived from "
            f"pydlshogi.network.network.Network. {found}"
        )
    _check(own[name], path)
    return own[name]


def _check(cls: type[Network], path: Path) -> None:
    """Refuses a class whose input planes cannot be made, or that needs arguments."""
    from pydlshogi.features import check_plane_num

    try:
        check_plane_num(cls.plane_num)
    except ValueError as error:
        raise OwnNetworkError(
            f"the class {cls.__name__} in the file {path} has no usable input: its {error}. "
            "Correct its plane_num."
        ) from None
    try:
        inspect.signature(cls).bind()
    except TypeError as error:
        raise OwnNetworkError(
            f"the class {cls.__name__} in the file {path} cannot be made without arguments: "
            f"{error}. Give each argument of its constructor a default."
        ) from None
