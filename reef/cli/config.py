"""`reef config`: the settings that the next start would use."""

from __future__ import annotations

from reef.cli.flags import understand
from reef.cli.group import JsonOption, command, noun
from reef.cli.serve import ConfigOption, show_settings
from reef.paths import Paths

app = noun("Show every setting and where it came from.", "reef config show", "reef config show --json")


@command(app, "show", examples=("reef config show", "reef config show -c reef.yaml --json"))
def show(config: ConfigOption = None, json: JsonOption = False) -> None:
    """Show every setting and where it came from.

    One row a setting: its value and its origin, which is a variable, a file with its line, the recipe's profile, or
    `default`. A secret is shown as set or unset. This is what the next start would use; it needs no daemon.
    """
    show_settings(understand(Paths.from_environ(), [], config, None, None).resolved, json)
