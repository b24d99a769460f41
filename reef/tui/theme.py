"""The look: one theme in dark and light, what each role looks like, and the ASCII twins of reef's symbols.

One accent colour for what needs the person, red only for what failed, dim for what is old. Nothing is said by colour
alone: every state has its word and its symbol.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import Theme

SYMBOLS: tuple[tuple[str, str, str], ...] = (
    ("●", "*", "served now, or the daemon is up"),
    ("○", "o", "the daemon is down"),
    ("▲", "!", "needs you"),
    ("✓", "v", "passed, or complete"),
    ("✗", "x", "failed"),
    ("✂", "%", "cut off at a limit"),
    ("▸", ">", "under the cursor, or folded"),
    ("▾", "v", "unfolded"),
    ("·", ".", "an attempt that became no version"),
    ("…", "~", "still running, or text left out"),
)
"""Symbol, its ASCII twin, and the words that help shows beside it."""

_DRAWING = {"─": "-", "│": "|", "▐": "#", "▏": "|", "▌": "|", "→": ">", "–": "-", "↑": "^", "↓": "v", "›": ">"}
_ASCII = str.maketrans({**{symbol: twin for symbol, twin, _ in SYMBOLS}, **_DRAWING})

DARK = Theme(
    name="reef-dark",
    dark=True,
    primary="#5fb3a1",
    secondary="#6fa8c9",
    accent="#f2b45c",
    warning="#f2b45c",
    error="#ef6b73",
    success="#6cc39a",
    foreground="#d3dcdf",
    background="#0e1417",
    surface="#0e1417",
    panel="#162025",
    variables={
        "reef-dim": "#8296a0",
        "reef-faint": "#4c5d66",
        "reef-rule": "#2b3a41",
        "reef-cursor": "#1d2d35",
        "reef-cursor-still": "#162025",
        "reef-added": "#8fd3a6",
        "reef-removed": "#d79a9a",
        "reef-added-back": "#1d3b2b",
        "reef-removed-back": "#43262a",
        "input-cursor-background": "#d3dcdf",
        "input-cursor-foreground": "#0e1417",
        "input-selection-background": "#2f5f6b",
    },
)
LIGHT = Theme(
    name="reef-light",
    dark=False,
    primary="#0d6b5a",
    secondary="#22618a",
    accent="#96590a",
    warning="#96590a",
    error="#b3262f",
    success="#1c7a4c",
    foreground="#1d282c",
    background="#f7f8f6",
    surface="#f7f8f6",
    panel="#e9edeb",
    variables={
        "reef-dim": "#5b6b72",
        "reef-faint": "#97a4a9",
        "reef-rule": "#cdd5d4",
        "reef-cursor": "#dbe7e6",
        "reef-cursor-still": "#e9edeb",
        "reef-added": "#1c6b3c",
        "reef-removed": "#983a3a",
        "reef-added-back": "#cdeed8",
        "reef-removed-back": "#f6d5d5",
        "input-cursor-background": "#1d282c",
        "input-cursor-foreground": "#f7f8f6",
        "input-selection-background": "#b6d7de",
    },
)

ROLES: dict[str, tuple[str, str, str]] = {
    "dim": ("reef-dim", "", ""),
    "faint": ("reef-faint", "", ""),
    "strong": ("", "", "bold"),
    "heading": ("reef-dim", "", "bold"),
    "accent": ("accent", "", "bold"),
    "good": ("success", "", ""),
    "failed": ("error", "", ""),
    "added": ("reef-added", "", ""),
    "removed": ("reef-removed", "", ""),
    "added-word": ("reef-added", "reef-added-back", "bold"),
    "removed-word": ("reef-removed", "reef-removed-back", "bold"),
    "you": ("secondary", "", "bold"),
    "agent": ("primary", "", "bold"),
    "code": ("secondary", "", ""),
    "key": ("primary", "", "bold"),
    "place": ("primary", "", "bold reverse"),
    "rule": ("reef-rule", "", ""),
    "cursor": ("", "reef-cursor", ""),
    "cursor-still": ("", "reef-cursor-still", ""),
}
"""Role to theme variables of its colour and background, and its attributes. Widgets look roles up here and not in
style sheets: matching style rules for every role of every widget took half of the time to open."""


def role_style(role: str, variables: Mapping[str, str]) -> Style:
    """What a role adds to the style of the widget it is painted in."""
    colour, back, attributes = ROLES[role]
    style = Style.parse(attributes) if attributes else Style()
    return style + Style(color=variables[colour] if colour else None, bgcolor=variables[back] if back else None)


class NoColour(LineFilter):
    """Takes every colour out of what is painted; bold and reverse stay."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, None if style is None else style.without_color, control) for text, style, control in segments
        ]


def wants_ascii(setting: bool, environ: Mapping[str, str] | None = None) -> bool:
    """Whether symbols are painted as ASCII: by `tui.ascii`, or on a terminal that says it is dumb."""
    env = os.environ if environ is None else environ
    return setting or env.get("TERM") == "dumb"


def first_theme(environ: Mapping[str, str] | None = None) -> str:
    """The theme to open with: light only when the terminal says that its background is (`COLORFGBG`)."""
    env = os.environ if environ is None else environ
    back = env.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT.name if back in ("7", "15") else DARK.name


def drawn(text: str, ascii_only: bool) -> str:
    """`text` with reef's symbols replaced by their ASCII twins, if so wished; the width stays the same."""
    return text.translate(_ASCII) if ascii_only else text
