"""Lets the tests of every folder import kifu_reference."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
