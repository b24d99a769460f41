"""Answers of the daemon as lines and cells: pure functions, no widgets, no input or output."""
