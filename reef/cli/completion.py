"""`reef completion`: the script that a shell reads; the candidates come from `reef __complete`."""

from __future__ import annotations

from typing import Annotated

import typer

from reef.cli import output, table
from reef.cli.group import command, single
from reef.errors import UsageError

app = single()

_BASH = """\
_reef() {
    local IFS=$'\\n'
    COMPREPLY=($(reef __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _reef reef
"""
_ZSH = """\
#compdef reef
_reef() {
    local -a found
    local line
    while IFS= read -r line; do
        found+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
    done < <(reef __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
    _describe 'reef' found || _files
}
if [ "$funcstack[1]" = "_reef" ]; then _reef "$@"; else compdef _reef reef; fi
"""
_FISH = """\
complete -c reef -e
complete -c reef -s c -l config -r -F
complete -c reef -f -a '(reef __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


@command(
    app,
    examples=(
        "reef completion bash > ~/.local/share/bash-completion/completions/reef",
        "reef completion fish > ~/.config/fish/completions/reef.fish",
    ),
)
def completion(shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell.")]) -> None:
    """Print the completion script of a shell.

    It completes commands, flags, scenarios, versions, asks, steps and receipts; the ids come from the database, so it
    works while the daemon is down.
    """
    if shell not in _SCRIPTS:
        raise UsageError(f"there is no completion for {shell!r}", f"reef completion {'|'.join(table.SHELLS)}")
    output.data(_SCRIPTS[shell].rstrip("\n"))
