"""The tests of this folder play on a board: see browser_helpers."""

from browser_helpers import client, engines, models, server  # noqa: F401
