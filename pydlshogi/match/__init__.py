"""Matches between USI engines: pairs of games from random openings, records, Elo.

``utils/match.py`` is the program; :mod:`pydlshogi.commands.match` its command line. The
rules are judged by cshogi, which shares no code with the engine under test.
"""
