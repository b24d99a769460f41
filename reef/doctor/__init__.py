"""Checks that look at everything else, in a process of their own: with or without a daemon, on a damaged store too."""
