"""The form of `adapters/<name>/adapter.toml`: what reef must know of one coding agent.

Placeholders are words in braces that `reef.harness.binding` knows; a text that is one placeholder and nothing else
keeps the value's type.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from reef.harness.tree import KINDS


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=lambda name: name.replace("_", "-"), populate_by_name=True
    )


class Install(_Section):
    """How the agent itself comes onto the machine."""

    kind: Literal["npm", "pypi", "ships"]
    """`npm`: by the adapter's `package-lock.json`. `pypi`: by its `requirements.lock`, into an environment of its own.
    `ships`: it is part of reef."""
    package: str
    version: str
    """The one version that was tried; nothing else is installed."""
    binary_path: str = ""
    """The program, relative to the install folder; `*` stands for what differs from machine to machine."""
    native: bool = False
    """Whether the program is started by itself, and not by Node."""
    module: str | None = None
    """For `ships`: the Python module that is run by this reef's own interpreter."""
    node: str = ""
    """Least version of Node that runs it or, for a native one, that installs it."""
    node_wheel: str = ""
    """Requirement that brings a Node from the Python package registry where the machine has none that fits."""
    runner: str | None = None
    """For `pypi`: a program of the adapter's own folder that is run in place of one of the package's."""
    python: str | None = None
    """Least version of Python that runs it, for `pypi`."""
    python_below: str | None = None
    """First version of Python that does not."""
    scripts: list[str] = []
    """Packages whose install scripts are run; all others' are not."""


class Run(_Section):
    """How the agent is started."""

    get: str | None = None
    """For an agent without `install`, which is the person's to install: the command that does it."""
    tested: str = ""
    """For such an agent: the version that was tried, as its own `version` says it."""
    headless: list[str]
    """Arguments of one run without a person; `{prompt}` stands for the prompt."""
    command: list[str] = []
    """Arguments of one run without a person that types a command, where a prompt cannot: `{id}`, and `{words}` for the
    words behind it, each an argument."""
    version: list[str]
    arguments: list[str] = []
    """What stands before the person's own arguments in every run, with placeholders."""
    reload: str | None = None
    """What a person types in a running session to read the installed files again."""
    environment: dict[str, str] = {}
    """Set for every run, where the person's shell does not set them."""
    bound: dict[str, str] = {}
    """Set for every run whatever the shell says: what points the agent at reef, with placeholders. `{token}` is the
    session's token, which is in no file."""
    removed: list[str] = []
    """Patterns of variables that the agent must not inherit."""
    sealed: dict[str, str] = {}
    """Set on top for a run that has no network."""
    rewords: bool = False
    """Whether the agent says in words of its own why a model call failed; the wrapper adds the daemon's after such a
    run."""
    mute: list[str] = []
    """Arguments of a run in which the agent shows nothing of what a hook says; the wrapper says it after the run."""
    shell: list[str] = []
    """Variables that reef sets and that programs of the agent's shell tool must see as the person has them. The
    person's values are handed on as `REEF_SHELL_<name>` to the entry that reef ships for the agent, which does that."""


class AgentHome(_Section):
    """What else the agent would find in its config home."""

    refused: list[str] = []
    """Names that it reads as instructions, or as programs to start, and that no version holds."""
    variables: dict[str, str] = {}
    """Further variables that move parts of it, with `{home}`."""
    link: Literal["folders", "entries"] = "folders"
    """Whether a folder of the tree is a link, or what is in it: an agent that writes beside its skills needs the
    second."""
    project_rules: list[str] = []
    """For an agent that must be told where a project's own rules are: the names of such a file, of which the first that
    is there counts in each folder. The placeholder `{project_rules}` is the list of their paths."""
    seed: dict[str, dict[str, Any]] = {}
    """Files that the agent keeps itself, and what must stand in them at start, with placeholders; all else stays."""
    cleared: dict[str, list[str]] = {}
    """Of what stays in such a file, the keys that do not: what would start programs (`a.b`: `b` in `a`; `*`: any)."""


class Alongside(_Section):
    """How the agent is run on top of the person's own configuration, with `--alongside`."""

    arguments: list[str] = []
    """What stands before the person's arguments, with placeholders; `{alongside}` is reef's own folder for it and
    `{rules}` the text of all rules."""
    bound: dict[str, str] = {}
    """As in `run`."""
    kept: list[str] = []
    """Patterns of the person's variables that stay, although `run.removed` names them."""
    settings: dict[str, Any] = {}
    """Settings that stand in arguments, each as `-c KEY=VALUE` with its value in TOML, with placeholders."""
    links: dict[str, str] = {}
    """Name in that folder to a path of the installed tree."""
    binding: dict[str, dict[str, Any]] = {}
    """Files of that folder that point the agent at reef, as in the adapter's `binding`."""


class Transcript(_Section):
    """How the agent writes down its own sessions."""

    format: str
    path: str


class Resume(_Section):
    """How the agent goes on with a session of its own."""

    arguments: list[str]
    """`{session}` stands for the session's id."""
    unless: list[str] = []
    """Arguments of a run without a person, after which nothing is said."""
    header: str = "session"
    """Type of the transcript's line that holds the session's id and directory; empty where many do."""
    id: str = "id"
    """Key of the session's id in that line."""
    within: str | None = None
    """Key of the object in that line that holds them; None for the line itself."""
    query: str | None = None
    """For a transcript in SQLite: a query for id, directory and last change (seconds since 1970), newest first."""


class Extensions(_Section):
    """Which files a code extension, a tool or a hook may be."""

    allowed: list[str] = []
    beside: dict[str, str] = {}
    """Further files in the folder of each code extension, name to content, with `{id}`."""


class Render(_Section):
    """Where each kind of entry goes, relative to the agent's config home. A kind that is left out is not rendered."""

    rules: str | None = None
    rules_head: str = ""
    """What stands above the rules in their file, which is there without any rule then."""
    rules_tail: str = ""
    """What stands below them."""
    skill: str | None = None
    agent_command: str | None = Field(None, alias="agent_command")
    code_extension: str | None = Field(None, alias="code_extension")
    tool: str | None = None
    hook: str | None = None
    agent: str | None = None
    graph: str | None = None
    config: dict[str, str] = {}
    """File for each config target."""
    files: dict[str, str] = {}
    """Texts that are there in every version: what the agent lists of reef's own commands."""
    front_matter: dict[str, list[str]] = {}
    """For a kind: what of `name` and `description` the agent wants at its head. reef adds what the entry lacks."""
    extensions: Extensions = Extensions()

    @property
    def places(self) -> dict[str, str]:
        """Kind to place, of every kind that is rendered but `config`."""
        found = {kind: getattr(self, kind) for kind in KINDS if kind != "config"}
        return {kind: place for kind, place in found.items() if place}


class Code(_Section):
    """What in a change is code."""

    config_keys: list[str] = []
    """`target.key.path` of the settings that are not."""
    shell_interpolation: list[str] = []
    """Regular expressions that find a shell call in a command or skill text."""
    front_matter_keys: list[str] | None = None
    """What a command or skill may have in its front matter that is not; None where the agent acts on nothing there."""


class Limits(_Section):
    """Sizes that admission holds a tree to."""

    entries: int = 256
    entry_bytes: int = 65536
    rules_bytes: int = 65536
    skill_description: int = 1024


class Reach(_Section):
    """How a changed entry is looked for in the request that the agent sends."""

    skill: list[str] = ["{name}", "{description}"]
    """Texts that name a skill in the request; every one must be there."""
    escape: Literal["none", "xml"] = "none"
    """How the agent writes a name and a description."""
    body: str | None = None
    """What a person types to have a skill's whole text put into the request."""
    command: str = "/{id} {words}"
    """What a person types to run a command."""
    placeholders: str = r"\$ARGUMENTS"
    """Regular expression that finds what the agent replaces in a command's text."""
    first: int = 1
    """Number by which a command's text calls the first word behind it."""
    around: bool = False
    """Whether the message that a command becomes holds more than the command's text."""


class Models(_Section):
    """Sizes assumed when the daemon does not name them."""

    context_window: int = 32768
    max_tokens: int = 8192
    least_window: int = 0
    """Window below which the agent does not start. It is told this much then, and reef refuses what the model cannot
    hold."""
    bare: int = 0
    """Tokens of its shortest request, for an agent that itself refuses a window below them."""


class Own(_Section):
    """What the agent has in the person's home when it is run without reef; `~` stands for that home."""

    places: list[str] = []
    """Its own files and folders, none of which reef writes."""
    leaks: list[str] = []
    """What it reads there whatever its config home is, so also when reef runs it."""
    contacts: dict[str, str] = {}
    """Addresses that it asks by itself, whatever reef switches off: each with when."""


class Adapter(_Section):
    """One coding agent. `load_adapter` makes it."""

    name: str
    title: str
    binary: str
    dialect: Literal["chat", "responses", "messages"]
    home_variable: str
    """Variable that moves the agent's whole config home."""
    session_header: str
    install: Install | None = None
    """None for an agent that is the person's to install: the program on their PATH is run."""
    run: Run
    home: AgentHome = AgentHome()
    own: Own = Own()
    transcript: Transcript | None = None
    resume: Resume | None = None
    alongside: Alongside | None = None
    """None where the agent cannot be run on top of the person's own configuration."""
    render: Render
    code: Code = Code()
    limits: Limits = Limits()
    reach: Reach = Reach()
    models: Models = Models()
    state: dict[str, list[str]] = {}
    """For each file of the home that the agent also writes: keys that survive the next start (`a.b`: `b` in `a`)."""
    digests: dict[str, Any] = {}
    """Further placeholders: each the SHA-256 of a value, with placeholders, as JSON without blanks in the order of its
    keys. For an agent that keeps the hash of what a person trusted."""
    binding: dict[str, dict[str, Any]] = {}
    """Files that point the agent at reef, with placeholders. The suffix tells JSON, TOML and YAML."""
    defaults: dict[str, dict[str, Any]] = {}
    """Files with values that the tree may override, with placeholders."""

    _folder: Path = PrivateAttr()

    @property
    def folder(self) -> Path:
        """The adapter's own folder."""
        return self._folder

    def folder_is(self, folder: Path) -> None:
        """Told once, by who read the file."""
        self._folder = folder

    @property
    def kinds(self) -> list[str]:
        """The entry kinds that this agent is given."""
        return [*self.render.places, *(["config"] if self.render.config else [])]
