"""Help is complete: the table is what the commands are, every command has examples that parse, topics are true."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from reef import errors
from reef.cli import app, table
from reef.cli.flags import dotted, setting_keys
from reef.cli.help import page
from reef.config import ENVIRONMENT
from tests.cli.shell import on_terminal, reef
from tests.contracts.commands import problem, split


def leaves() -> Iterator[tuple[str, Any]]:
    """Every command that does something, with its full name."""
    for entry in table.COMMANDS:
        loaded = app.load(entry)
        if entry.verbs:
            yield from ((f"{entry.name} {verb}", command) for verb, command in loaded.commands.items())
        else:
            yield entry.name, loaded


LEAVES = dict(leaves())
each_command = pytest.mark.parametrize("name", LEAVES)


def examples_of(name: str) -> list[str]:
    """The lines below `Examples:`."""
    lines = (LEAVES[name].epilog or "").splitlines()
    return [line.strip() for line in lines[lines.index("Examples:") + 1 :]]


@pytest.mark.parametrize("entry", table.COMMANDS, ids=lambda entry: entry.name)
def test_the_table_has_the_verbs_that_the_command_has(entry: table.Command) -> None:
    loaded = app.load(entry)
    assert set(getattr(loaded, "commands", {})) == set(entry.verbs)
    assert entry.default is None or entry.default in entry.verbs
    assert entry.group in table.GROUPS


@each_command
def test_a_command_has_the_line_of_the_table_and_a_paragraph(name: str) -> None:
    noun, _, verb = name.partition(" ")
    entry = table.find(noun)
    assert entry is not None
    first, _, rest = LEAVES[name].help.partition("\n")
    assert first.rstrip(".") == (entry.verbs[verb] if verb else entry.line)
    assert len(rest.split()) >= 10, "a paragraph says what the line leaves out"


@each_command
def test_a_command_has_two_examples_that_parse(name: str) -> None:
    examples = examples_of(name)
    assert len(examples) >= 2
    assert len(set(examples)) == len(examples)
    for example in examples:
        typed = shlex.split(example)
        words = typed[1 : min((typed.index(sign) for sign in ("|", ">") if sign in typed), default=len(typed))]
        assert typed[0] == "reef", example
        assert words[: len(name.split())] == name.split(), example
        context = LEAVES[name].make_context(name, words[len(name.split()) :])
        if context.args and name in ("serve", "up"):
            dotted(context.args)


@each_command
def test_every_parameter_of_a_command_is_explained(name: str) -> None:
    silent = [parameter.name for parameter in LEAVES[name].params if not getattr(parameter, "help", "")]
    assert not silent


READING = ("status", "config show", "paths", "asks list", "asks show", "records list", "records show", "sessions list")
READING += ("reports list", "reports show", "steps list", "steps show")
READING += ("scenarios list", "versions list", "versions show", "versions log", "versions diff", "versions export")
READING += ("agents list", "recipes list", "doctor", "disk", "usage", "backup", "restore")


@pytest.mark.parametrize("name", READING)
def test_a_reading_command_has_json(name: str) -> None:
    assert any("--json" in parameter.opts for parameter in LEAVES[name].params)


@each_command
def test_a_commands_usage_names_values_in_capitals(name: str) -> None:
    shown = LEAVES[name].get_help(LEAVES[name].make_context(name, [], resilient_parsing=True))
    assert re.findall(r"<[a-z ]+[>\[]|\{[a-z_]+\}|\b(?:INTEGER|FLOAT)\b", shown) == []


def test_the_usage_of_a_rating_names_the_answers_before_and_the_note() -> None:
    assert "reef good [OPTIONS] [-2|-3|…] [NOTE]" in reef("good", "--help").out


@pytest.mark.parametrize("noun", [entry.name for entry in table.COMMANDS if entry.verbs])
def test_the_help_of_a_noun_has_examples_that_exist(noun: str) -> None:
    shown = reef(noun, "--help").out
    examples = shown.partition("Examples:\n")[2].split("\n")
    assert [found for line in examples if line.strip() for words in split(line) if (found := problem(words))] == []
    assert len([line for line in examples if line.strip().startswith(f"reef {noun} ")]) >= 2


@pytest.mark.parametrize("topic", table.TOPICS)
def test_a_page_fits_a_narrow_terminal_without_breaking_a_word(topic: str) -> None:
    _, shown = on_terminal("help", topic, env={"COLUMNS": "70", "NO_COLOR": "1"})
    assert max(len(line) for line in shown.splitlines()) <= 70
    whole = reef("help", topic).out.split()
    assert shown.split()[: len(whole)] == whole


def test_the_top_help_names_every_command_and_topic() -> None:
    shown = reef("--help")
    assert (shown.status, shown.err) == (0, "")
    for word in [entry.name for entry in table.COMMANDS] + list(table.TOPICS):
        assert re.search(rf"\b{re.escape(word)}\b", shown.out)
    assert shown.out == reef().out == reef("help").out == reef("-h").out
    assert max(len(line) for line in shown.out.splitlines()) <= 80


@pytest.mark.parametrize("topic", table.TOPICS)
def test_a_topic_has_a_page_with_examples(topic: str) -> None:
    shown = reef("help", topic)
    assert shown.status == 0
    assert shown.out.startswith(topic.upper().replace("-", " "))
    assert "Examples:\n  " in shown.out
    assert max(len(line) for line in shown.out.splitlines()) <= 120


def test_help_of_a_command_is_what_its_flag_prints() -> None:
    assert reef("help", "versions", "install").out == reef("versions", "install", "--help").out
    assert "reef versions install" in reef("help", "versions", "install").out


def test_an_unknown_topic_names_the_nearest() -> None:
    shown = reef("help", "exitcodes")
    assert shown.status == 2
    assert "hint: reef help exit-codes" in shown.err


def test_the_environment_page_names_every_variable_that_is_a_setting() -> None:
    text = page("environment")
    for variable, key in ENVIRONMENT.items():
        assert re.search(rf"^  {variable} +{re.escape(key)}\b", text, re.M), variable


def test_the_config_page_names_every_setting_and_no_other() -> None:
    named = re.findall(r"^  ([a-z]+\.[a-z.-]+)  ", page("config"), re.M)
    assert sorted(named) == sorted(setting_keys())


def test_the_exit_code_table_is_true() -> None:
    told = {int(code) for code in re.findall(r"^  (\d+)  ", page("exit-codes"), re.M)}
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.ReefError)]
    assert told == {0, 141} | {kind.exit_code for kind in kinds}


def test_the_words_page_has_every_noun_of_the_command_line() -> None:
    nouns = {entry.name.removesuffix("s") for entry in table.COMMANDS if entry.verbs} - {"config", "agent"}
    told = set(re.findall(r"^([a-z]+(?: id)?)  ", page("words"), re.M))
    assert nouns <= told
