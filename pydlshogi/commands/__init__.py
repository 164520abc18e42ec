"""The programs: a module each, with its options and its ``main``."""
