"""Child process: reads the records of lists and writes their caches.

    python -m pydlshogi.gpu_check.reading LIST …

Prints ``LIST<TAB>POSITIONS positions, SECONDS s`` for each list.
"""

from __future__ import annotations

import sys
import time

from pydlshogi.kifu.loading import load_positions


def main() -> int:
    """Reads and prints; returns the exit status."""
    for path in sys.argv[1:]:
        start = time.perf_counter()
        loaded = load_positions(path)
        source = "from the cache" if loaded.from_cache else "from the records"
        seconds = time.perf_counter() - start
        print(f"{path}\t{len(loaded.positions)} positions {source}, {seconds:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
