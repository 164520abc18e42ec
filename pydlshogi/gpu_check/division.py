"""Division of large files, for ways of transport that limit the size of a file."""

from __future__ import annotations

from pathlib import Path

#: Largest size of a file in bytes; larger ones are divided.
LARGEST = 16_000_000


def divide_large_files(folder: Path, largest: int = LARGEST) -> list[str]:
    """Divides the files that are larger than ``largest`` bytes.

    A file ``NAME`` becomes ``NAME.part0``, ``NAME.part1`` and so on.

    Returns:
        The names of the divided files, relative to the folder.
    """
    divided = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_size > largest:
            data = path.read_bytes()
            for number, start in enumerate(range(0, len(data), largest)):
                part = path.with_name(f"{path.name}.part{number}")
                part.write_bytes(data[start : start + largest])
            path.unlink()
            divided.append(path.relative_to(folder).as_posix())
    return divided


def join_file(path: Path) -> None:
    """Joins a file that an earlier run divided; does nothing if it was not divided."""
    parts = sorted(path.parent.glob(f"{path.name}.part[0-9]"))
    if parts and not path.exists():
        path.write_bytes(b"".join(part.read_bytes() for part in parts))
    for part in parts:
        part.unlink()
