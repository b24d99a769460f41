"""Grow: the recipe protocol, the proposers, and the steps that turn asks and feedback into candidates."""
