"""The base class of the errors that a user can cause."""

from __future__ import annotations


class UserError(Exception):
    """The program cannot do what it was asked to do.

    The text is one or two sentences: what is wrong, where, and what to do. A program
    prints it without a traceback (:mod:`pydlshogi.commands.program`).
    """
