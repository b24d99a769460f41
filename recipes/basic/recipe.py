"""Record only: calls are served and kept, reports are stored, no version ever follows."""

from __future__ import annotations

from reef.learning.recipe import Recipe


class Basic(Recipe):
    """Takes no input, so it never has a batch and never a step."""
