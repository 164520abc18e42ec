"""Small records and kifu lists for the tests."""

import numpy

from pydlshogi.positions import POSITION

EVEN = "V2.2\nN+A\nN-B\nPI\n+\n"
MOVES = "+7776FU\n-3334FU\n+8822UM\n-3122GI\n+0055KA\n"
GAME = EVEN + MOVES + "%TORYO\n"


def write_list(folder, name="train.txt", **files):
    """Writes files, and a list of them; gives the list's path."""
    names = []
    for stem, content in files.items():
        path = folder / (stem.replace("__", "."))
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        names.append(path.name)
    kifu_list = folder / name
    kifu_list.write_text("".join(f"{name}\n" for name in names))
    return kifu_list


def random_positions(count, seed=0):
    random = numpy.random.RandomState(seed)
    raw = random.randint(0, 256, (count, POSITION.itemsize), dtype=numpy.uint8)
    return raw.view(POSITION).reshape(-1)
