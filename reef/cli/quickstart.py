"""`reef quickstart`: the whole loop once, on real input, in a scenario of its own.

It does what a person would do with the other commands, over the same HTTP, and ends with a proof: the request that pi
sent, read back from its record, holds the rule that was asked for. Nothing here knows what the model will answer.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import reef
from reef.cli import firstrun, installing
from reef.cli.difference import lines_of
from reef.cli.group import command, single
from reef.cli.look import OUT, span
from reef.cli.scope import head_of, person_only, versions_of
from reef.client import Client, current_scenario
from reef.errors import Failed, NotFound, Refused
from reef.paths import Paths, write_atomic
from reef.text import one_line

if TYPE_CHECKING:
    from reef.cli.firstrun import Exchange

app = single()

SCENARIO = "quickstart"
ADAPTER = "pi"
QUESTION = "What is the capital of France?"
RULE = "Always answer in one short sentence."
GREETING = "Say hello."
INDENT = " " * 12


@command(app, examples=("reef quickstart", "reef quickstart --prove"))
def quickstart(
    prove: Annotated[
        bool, typer.Option("--prove", help="Run the last part alone: is the rule in pi's request?")
    ] = False,
) -> None:
    """See reef serve, record, learn and commit once, for real.

    It works in the scenario `quickstart` on the small embedded model and touches no other scenario. What is missing is
    installed first: the model, Node and pi, all in reef's own folders. A second run installs nothing and asks for
    nothing that is there already. It ends with 5 when the rule is not in what pi sent.
    """
    person_only("run the quickstart")
    paths = Paths.from_environ()
    if prove:
        with Client.connect(paths, start=True) as client:
            show_proof(client, paths)
        return
    firstrun.fetch_weights(paths)
    with Client.connect(paths, start=True) as client:
        install_agent(client, paths)
        open_scenario(client)
        answer = serve(client)
        observe(client, answer)
        before, head = grow(client)
        commit(client, paths, before, head)
        show_proof(client, paths)
    show_next(paths)


def install_agent(client: Client, paths: Paths) -> None:
    """The agent and its Node. Raises Failed with a command that the person has: `reef` may not be on PATH yet."""
    try:
        firstrun.install_agent(client, paths, ADAPTER)
    except Failed as error:
        installer = os.environ.get("REEF_INSTALLER")
        if installer is None or error.hint is None:
            raise
        again = f"{shlex.quote(installer)} quickstart"
        raise Failed(error.message, error.hint.replace(f"reef agents add {ADAPTER}", again)) from None


def open_scenario(client: Client) -> None:
    """The quickstart's own scenario, made on the first run."""
    client.create_scenario(SCENARIO, recipe="reefine", engine="embedded", adapter=ADAPTER)
    firstrun.tell(OUT.joined("daemon up", client.url, f"scenario {SCENARIO}", "engine embedded"))


def serve(client: Client) -> Exchange:
    """One real call, with its receipt."""
    answer = firstrun.exchange(client, SCENARIO, QUESTION)
    arrow = OUT.symbol("›")
    firstrun.tell()
    firstrun.tell(f"1 serve     you {arrow} {QUESTION}")
    firstrun.tell(f"{INDENT}{answer.model} {arrow} {one_line(answer.text, 300)}")
    facts = OUT.joined(f"receipt {OUT.id(answer.receipt)}", f"{answer.tokens} tokens", span(answer.seconds))
    firstrun.tell(f"{INDENT}{facts}")
    return answer


def observe(client: Client, answer: Exchange) -> None:
    """A report on the receipt, as `reef good` sends it."""
    clock = firstrun.Clock()
    client.report(SCENARIO, {"score": 1.0, "references": [answer.receipt]})
    stored = OUT.joined(f"report stored on {OUT.id(answer.receipt)}", span(clock.seconds))
    firstrun.tell(f"2 observe   reef good {OUT.symbol('→')} {stored}")


def grow(client: Client) -> tuple[int, int]:
    """Ask for the rule and follow the step; an ask that is answered already is not made again.

    Returns the head before and after. Raises Failed with the step's reason when it did not publish.
    """
    before = _head(client)
    if RULE in _rules(client, before):
        firstrun.tell(f"3 grow      v{before} has the rule already, so nothing is asked")
        return before, before
    clock = firstrun.Clock()
    asked = client.train(SCENARIO, RULE)
    firstrun.tell(f'3 grow      ask #{asked["number"]} "{RULE}"')
    settled = firstrun.follow_ask(client, asked["agent_record_id"], f"{INDENT}  ")
    if settled.get("step") is None:
        raise Failed(_why(settled), f"reef asks show {asked['number']} --scenario {SCENARIO}")
    step = client.step(SCENARIO, int(settled["step"]))
    count = len(step.get("mutations") or [])
    made = f"proposed {count} {'entry' if count == 1 else 'entries'}"
    firstrun.tell(INDENT + OUT.joined(f"step {step['number']}", made, str(settled["state"]), span(clock.seconds)))
    if settled["state"] != "published":
        raise Failed(_why(settled), f"reef steps show {step['number']} --scenario {SCENARIO}")
    return before, _head(client)


def commit(client: Client, paths: Paths, before: int, head: int) -> None:
    """What the version changed, and its installation for the agent."""
    if before != head:
        firstrun.tell(f"4 commit    v{before} {OUT.symbol('→')} v{head}")
        for line in lines_of(client.diff(SCENARIO, f"v{before}", f"v{head}")):
            firstrun.tell(INDENT + line)
    else:
        firstrun.tell(f"4 commit    v{head}")
    clock = firstrun.Clock()
    installed = _install(client, paths, head)
    place = firstrun.short_path(Path(installed["path"]))
    if installed.get("changed"):
        said = f"installed for {ADAPTER} ({place}); your own ~/.{ADAPTER} is untouched"
    else:
        said = f"installed for {ADAPTER} already ({place})"
    firstrun.tell(f"{INDENT}{OUT.joined(said, span(clock.seconds))}")


def show_proof(client: Client, paths: Paths) -> None:
    """Run pi once on what is installed and read its request back. Raises Refused when the rule is not in it."""
    wrapper = paths.bin / f"reef-{ADAPTER}"
    if not wrapper.is_file():
        raise Refused(f"nothing is installed for {ADAPTER}, so there is nothing to prove", "reef quickstart")
    last = _last_sequence(client)
    clock = firstrun.Clock()
    ran = firstrun.run_agent(wrapper, SCENARIO, GREETING)
    calls = client.records(scenario=SCENARIO, after=last, limit=50)["records"]
    sent = [row for row in calls if row.get("source") == "agent" and not row.get("side_call")]
    if not sent:
        reason = one_line((ran.stderr or ran.stdout).strip() or "it said nothing", 300)
        raise Refused(f"{ADAPTER} sent no request (exit {ran.returncode}): {reason}", "reef quickstart")
    receipt = str(sent[0]["agent_record_id"])
    around = firstrun.find_in_request(client.record_body(receipt, "request"), RULE)
    facts = OUT.joined(f"receipt {OUT.id(receipt)}", span(clock.seconds))
    firstrun.tell()
    firstrun.tell(f'proof       reef-{ADAPTER} -p "{GREETING}" {OUT.symbol("→")} {facts}')
    if around is None:
        show = f"reef records show {receipt} --request"
        raise Refused(f"the rule is not in the request that {ADAPTER} sent", show)
    firstrun.tell(f"{INDENT}{one_line(around, 200)}      read back from the record")


def show_next(paths: Paths) -> None:
    """Three commands to go on with, and how to take it all back."""
    scenario = "" if current_scenario(paths)[0] == SCENARIO else f" --scenario {SCENARIO}"
    undo = [f"reef versions rollback v1{scenario}", f"{_installer()} uninstall --purge"]
    firstrun.tell()
    firstrun.tell("next   reef tui                                    look around")
    firstrun.tell("       reef down && reef up --model ollama/qwen3   use a model that can write changes")
    firstrun.tell(f"       reef-{ADAPTER}                                     your agent, through reef")
    firstrun.tell(f"undo   {OUT.joined(*undo)}")
    if str(paths.bin) not in os.environ.get("PATH", "").split(os.pathsep):
        firstrun.tell(f'path   export PATH="{paths.bin}:$PATH"   in your shell\'s profile, so that these are found')


def _installer() -> str:
    """How the installer was called, else where it is: in the wheel, or beside the package in a checkout."""
    package = Path(reef.__file__).parent
    place = next(
        (folder / "install.sh" for folder in (package, package.parent) if (folder / "install.sh").is_file()), None
    )
    return os.environ.get("REEF_INSTALLER") or (f"sh {shlex.quote(str(place))}" if place else "./install.sh")


def _head(client: Client) -> int:
    head = head_of(versions_of(client, SCENARIO))
    if head is None:
        raise NotFound(f"scenario {SCENARIO} has no version yet", "reef quickstart")
    return head


def _rules(client: Client, number: int) -> str:
    files = client.version(SCENARIO, number)["files"]
    return "\n".join(text for path, text in files.items() if path.startswith("harness/rules/"))


def _why(settled: dict[str, Any]) -> str:
    reason = one_line(str(settled.get("reason") or settled.get("meaning") or "no reason given"), 300)
    return f"the ask was {settled['state']}: {reason}"


def _install(client: Client, paths: Paths, head: int) -> dict[str, Any]:
    """Install `head` for the agent. The scenario that was installed last stays the one that commands mean."""
    last = paths.last_install.read_bytes() if paths.last_install.is_file() else None
    lines = client.install_harness(SCENARIO, ADAPTER, version=head, expected_head=head)
    installed = installing.run(lines, f"the harness of {ADAPTER}")
    if last is not None and last.strip() not in (b"", SCENARIO.encode()):
        write_atomic(paths.last_install, last)
    return installed


def _last_sequence(client: Client) -> int:
    try:
        rows = client.records(scenario=SCENARIO, limit=1)["records"]
    except NotFound:
        raise Refused("the quickstart has not run here yet, so there is nothing to prove", "reef quickstart") from None
    return int(rows[0]["sequence"]) if rows else 0
