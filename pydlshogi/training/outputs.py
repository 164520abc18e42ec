"""The places a run writes to, made or refused before it starts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


class OutputError(Exception):
    """A run cannot write where it was told to; the text says where, why and what to do."""


def prepare_outputs(outputs: Mapping[str, str], inputs: Mapping[str, str]) -> None:
    """Makes sure that files can be written later, and makes their folders.

    Args:
        outputs: Option and path of each file that will be written; an empty path is
            passed over.
        inputs: Name and path of each file that must not be overwritten.

    Raises:
        OutputError: two of the paths are one file, a path is a folder, or its folder
            cannot be made or written to.
    """
    seen = {os.path.realpath(path): name for name, path in inputs.items() if path}
    for option, path in outputs.items():
        if not path:
            continue
        real = os.path.realpath(path)
        if real in seen:
            raise OutputError(
                f"{option} {path} is the same file as {seen[real]}. Give it another name."
            )
        seen[real] = option
        _prepare(option, Path(path))


def _prepare(option: str, path: Path) -> None:
    if path.is_dir():
        raise OutputError(f"{option} {path} is a folder. Name a file in it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise OutputError(
            f"{option} {path}: folder {path.parent} cannot be made or written to "
            f"({error.strerror}). Choose another folder."
        ) from None
