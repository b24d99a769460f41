"""reef: continual improvement of coding agents on one person's machine."""

__version__ = "0.1.0"
