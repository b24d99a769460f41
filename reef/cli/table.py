"""What commands there are: name, group, one line, and the module that holds each.

`reef --help` and completion are made from this table alone, so that they cost no import; a test compares it with the
real commands. Only builtins are used here for the same reason.
"""

from __future__ import annotations


class Command:
    """One top-level command. `verbs` maps the verbs of a noun to their lines; `default` is the verb to leave out."""

    __slots__ = ("app", "default", "group", "line", "module", "name", "verbs")

    def __init__(
        self,
        name: str,
        group: str,
        line: str,
        module: str = "",
        app: str = "app",
        verbs: dict[str, str] | None = None,
        default: str | None = None,
    ) -> None:
        self.name = name
        self.group = group
        self.line = line
        self.module = f"reef.cli.{module or name}"
        self.app = app
        self.verbs = verbs or {}
        self.default = default


GROUPS = ("start", "daily", "look", "versions", "set up")

COMMANDS: tuple[Command, ...] = (
    Command("quickstart", "start", "See reef serve, record, learn and commit once, for real"),
    Command("up", "start", "Start the daemon in the background"),
    Command("down", "start", "Stop the daemon"),
    Command("off", "start", "Turn reef off, and show that plain agents are as they were"),
    Command("serve", "start", "Run the daemon in the foreground"),
    Command("status", "start", "Show the daemon, the engine, the scenarios and what needs you"),
    Command("logs", "start", "Show the daemon's log"),
    Command("ask", "daily", "Ask in plain words for a change"),
    Command("good", "daily", "Rate the last answer as good", "rate", "good_app"),
    Command("bad", "daily", "Rate the last answer as bad", "rate", "bad_app"),
    Command("undo", "daily", "Take back the last rating given in this directory", "rate", "undo_app"),
    Command("report", "daily", "Send a report on receipts: score, feedback, metadata"),
    Command("use", "daily", "Choose the scenario that commands mean"),
    Command("tui", "daily", "Open the full-screen view"),
    Command(
        "asks",
        "look",
        "List, show, watch or cancel asks",
        verbs={
            "list": "List the asks of a scenario",
            "show": "Show one ask and what came of it",
            "watch": "Follow one ask until it is settled",
            "cancel": "Cancel an ask that is not settled",
        },
        default="list",
    ),
    Command(
        "proposals",
        "look",
        "List or show changes that agents proposed",
        verbs={
            "list": "List the changes that agents proposed in their sessions",
            "show": "Show one proposal, its change and what came of it",
        },
        default="list",
    ),
    Command(
        "records",
        "look",
        "List records, or show one with its request and reply",
        verbs={
            "list": "List the newest records",
            "search": "Find records by what was said in them",
            "forget": "Remove records, and what was made from them, for good",
            "prune": "Remove the oldest bodies until so many bytes of them are left, and shrink the file",
            "show": "Show one record, or the exact bytes of its request or reply",
            "export": "Write records out, for another home or for training",
        },
        default="list",
    ),
    Command(
        "reports",
        "look",
        "List, show or revise reports",
        verbs={
            "list": "List the newest reports",
            "show": "Show one report and every value it had",
            "revise": "Change what a report says",
        },
        default="list",
    ),
    Command("import", "look", "Bring in records, or sessions that an agent had before reef", "importing"),
    Command(
        "sessions",
        "look",
        "List sessions, or show one as a conversation",
        verbs={"list": "List the newest sessions", "show": "Show a session as one conversation"},
        default="list",
    ),
    Command(
        "steps",
        "look",
        "List, show or cancel steps",
        verbs={
            "list": "List every step of a scenario, rejected ones too",
            "show": "Show one step: what it read, made and decided",
            "cancel": "Cancel a step that is running",
        },
        default="list",
    ),
    Command("page", "look", "Open the page of a version or of an ask"),
    Command("usage", "look", "Show calls, tokens, cost and time by agent, model, day or tool"),
    Command(
        "scenarios",
        "look",
        "List, create or archive scenarios",
        verbs={
            "list": "List the scenarios of this home",
            "create": "Create a scenario with its base version v1",
            "archive": "Take a scenario out of use; nothing of it is lost",
            "restore": "Bring an archived scenario back into use",
        },
        default="list",
    ),
    Command(
        "versions",
        "versions",
        "List, show, compare, install, promote or roll back versions",
        verbs={
            "list": "List the versions of a scenario, newest first",
            "show": "Show one version and its files",
            "log": "Show the history of a scenario, one line a version",
            "diff": "Show what differs between two versions, word by word",
            "install": "Install a version for a coding agent on this machine",
            "promote": "Make a pending version the head",
            "rollback": "Publish the content of an older version again",
            "pin": "Keep one version installed while newer ones are served",
            "unpin": "Let the installed version follow the head again",
            "try": "Run the agent with a version for one session",
            "bisect": "Find the version that broke things",
            "export": "Carry a version away",
            "import": "Make a version of what another reef exported",
        },
        default="list",
    ),
    Command("why", "versions", "Show where a line, an entry or a version came from"),
    Command(
        "agents",
        "set up",
        "Install or remove a coding agent, or list them",
        verbs={
            "list": "List the coding agents that reef knows",
            "show": "Show one coding agent: how it is installed and what it can be given",
            "add": "Install a coding agent and its harness",
            "remove": "Remove what reef installed for a coding agent",
        },
        default="list",
    ),
    Command("setup", "set up", "Show what versions need of this machine, and provide it"),
    Command("recipes", "set up", "List the recipes", verbs={"list": "List the recipes"}, default="list"),
    Command(
        "config",
        "set up",
        "Show every setting and where it came from",
        verbs={"show": "Show every setting and where it came from"},
        default="show",
    ),
    Command("doctor", "set up", "Check the record store, the disk, the settings and the daemon"),
    Command("disk", "set up", "Show what takes how much of the disk"),
    Command("backup", "set up", "Save records, versions and settings in one file"),
    Command("restore", "set up", "Put a backup in the place of records, versions and settings"),
    Command("paths", "set up", "Show where reef keeps its files"),
    Command("completion", "set up", "Print the completion script of a shell"),
    Command("help", "set up", "Show a help topic or a command's help"),
)

TOPICS: dict[str, str] = {
    "words": "what reef's words mean",
    "environment": "variables that reef reads",
    "config": "settings, their files and their order",
    "exit-codes": "what each exit status means",
    "formats": "what is printed where, and --json",
    "clients": "how any program calls its model through reef",
    "providers": "which models can answer, and whose keys they need",
    "records": "the tables and views of the record store",
    "recipes": "how a scenario learns",
    "agents": "which coding agents reef runs, and how",
    "adapters": "how a coding agent is described",
    "security": "who may do what, and what that does not stop",
    "privacy": "what is kept, where, and what leaves the machine",
}

SHELLS = ("bash", "zsh", "fish")


def _topics() -> list[str]:
    """The line of the topics, as many as it takes."""
    lines = ["`reef help TOPIC`: "]
    for name in TOPICS:
        word = f"{name}, " if name != list(TOPICS)[-1] else name
        if len(lines[-1]) + len(word.rstrip()) > 80:
            lines.append(" " * len("`reef help TOPIC`: "))
        lines[-1] += word
    return [line.rstrip() for line in lines]


def find(name: str) -> Command | None:
    """The command of that name."""
    for command in COMMANDS:
        if command.name == name:
            return command
    return None


def top_help(version: str) -> str:
    """The text of `reef --help`."""
    lines = [
        f"reef {version}: continual improvement of coding agents on this machine",
        "",
        "Usage: reef COMMAND [ARGUMENTS]",
    ]
    for group in GROUPS:
        lines += ["", f"{group}:"]
        lines += [f"  {command.name:<11} {command.line}" for command in COMMANDS if command.group == group]
    lines += [
        "",
        "`reef COMMAND --help` has examples; read commands take --json.",
        *_topics(),
        "",
        "Examples:",
        "  reef quickstart",
        "  reef up --model ollama/qwen3",
    ]
    return "\n".join(lines)
