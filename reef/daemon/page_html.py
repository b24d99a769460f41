"""A page as HTML: one file without a script, an image or an address of its own, every text in it escaped."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from typing import Any

from aiohttp import web

from reef.daemon.page_sections import Section
from reef.text import safe

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1b1b; background: #fff; }
h1 { font-size: 1.3rem; } h2 { font-size: 1rem; margin: 0 0 .5rem; }
section { border: 1px solid #d0d0d0; border-radius: 6px; padding: .8rem 1rem; margin: 1rem 0; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.45 ui-monospace, monospace; }
.put { color: #116329; } .taken { color: #a40e26; }
@media (prefers-color-scheme: dark) { body { color: #e6e6e6; background: #161616; } section { border-color: #444; }
  .put { color: #7ee787; } .taken { color: #ff9492; } }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
HEADERS = {
    # A data block of type application/json is no script: nothing on the page runs, and only its own style is loaded.
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def page(title: str, sections: Sequence[Section], row: Any, refresh_s: int | None = None) -> web.Response:
    """The page as a reply; `row` is embedded as JSON, `refresh_s` has the browser load it anew."""
    head = f'<meta http-equiv="refresh" content="{refresh_s}">\n' if refresh_s else ""
    shown = _text(title)
    cards = "\n".join(_card(section) for section in sections)
    text = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{head}<title>{shown}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{shown}</h1>
{cards}
<script type="application/json" id="row">{_data(row)}</script>
</body>
</html>
"""
    return web.Response(text=text, content_type="text/html", headers=HEADERS)


def _card(section: Section) -> str:
    lines = "\n".join(_line(str(line), section["title"] == "What changed") for line in section["lines"])
    return f"<section>\n<h2>{_text(section['title'])}</h2>\n<pre>{lines}</pre>\n</section>"


def _line(line: str, differs: bool) -> str:
    shown = _text(line)
    kind = {"+": "put", "-": "taken"}.get(line[2:3]) if differs and line.startswith("  ") else None
    return f'<span class="{kind}">{shown}</span>' if kind else shown


def _text(text: Any) -> str:
    return escape(safe(str(text)), quote=True)


def _data(row: Any) -> str:
    """JSON that ends no element and begins none, whatever it holds."""
    found = json.dumps(row)
    for char in "<>&":
        found = found.replace(char, f"\\u{ord(char):04x}")
    return found
