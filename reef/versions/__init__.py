"""Commit: the git repository that holds every version, and the order in which one is published."""
