"""What the tests of every folder share.

They can import kifu_reference; and no example of a hypothesis test is timed, since a
busy machine may take its time.
"""

import sys
from pathlib import Path

import hypothesis

sys.path.insert(0, str(Path(__file__).parent))

hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")
