"""Defaults that options and computations share; nothing heavy is imported here."""

#: Scale fitted to the floodgate games of 2016: python utils/fit_eval_scale.py LIST.
EVAL_SCALE = 326.0
