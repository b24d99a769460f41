"""A turn of reef's own agent: what goes to the model, what the tools do, what is kept."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.unit.native.conftest import Native


def test_the_answer_is_what_is_printed_and_the_call_names_the_session(native: Native) -> None:
    assert native.run("-p", "say hi") == (0, "You said: say hi\n", "")
    (entry,) = native.lines()
    assert entry["headers"]["authorization"] == "Bearer token"
    assert entry["headers"]["x-reef-session"] == native.session()[0]["id"]
    (sent,) = native.requests()
    assert (sent["model"], sent["stream"], sent["max_tokens"]) == ("fake-model", True, 1024)
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["read", "write", "edit", "bash"]
    # What every request carries beside the conversation must leave room in a window of 8,192 tokens.
    assert len(json.dumps([sent["messages"][0], sent["tools"]])) < 3000


def test_rules_skills_and_the_projects_own_words_are_in_the_system_prompt(native: Native) -> None:
    native.put("rules.md", "never use tabs\n")
    native.put("skills/linter/SKILL.md", "---\nname: linter\ndescription: how to lint\n---\nRun ruff.\n")
    (native.project / "AGENTS.md").write_text("The tests are in tests/.\n")
    native.run("-p", "hi")
    (sent,) = native.requests()
    system = sent["messages"][0]["content"]
    assert "never use tabs" in system and "The tests are in tests/." in system
    assert f"- linter: how to lint ({native.home / 'skills/linter/SKILL.md'})" in system and "Run ruff." not in system


def test_a_skill_is_put_in_whole_when_it_is_typed_and_a_command_takes_the_words_behind_it(native: Native) -> None:
    native.put("skills/linter/SKILL.md", "---\ndescription: how to lint\n---\nRun ruff.\n")
    native.put("commands/greet.md", "---\ndescription: x\n---\nGreet $ARGUMENTS twice.\n")
    native.run("-p", "/skill:linter on this file")
    native.run("-p", "/greet the people")
    native.run("-p", "/unknown words")
    asked = [sent["messages"][-1]["content"] for sent in native.requests()]
    assert asked == ["Run ruff.\n\non this file", "Greet the people twice.", "/unknown words"]


def test_a_tool_is_called_and_the_model_reads_what_became_of_it(native: Native) -> None:
    status, out, err = native.run("-p", '[[tool bash {"command": "echo one; echo two >&2; pwd"}]]')
    assert (status, out) == (0, f"The tool said: {native.project}\n")
    assert err == "· bash echo one; echo two >&2; pwd\n"
    result = native.requests()[1]["messages"][-1]
    assert result == {"role": "tool", "tool_call_id": result["tool_call_id"], "content": f"one\ntwo\n{native.project}"}


def test_a_call_that_makes_no_sense_is_answered_and_the_turn_goes_on(native: Native) -> None:
    for given, said in (
        ("fly {}", "there is no tool 'fly' (tools: read, write, edit, bash)"),
        ("bash {broken", "the arguments are not one JSON object"),
        ("read {}", "'path' is missing"),
        ('bash {"command": "exit 3"}', "(exit status 3)"),
    ):
        status, out, _ = native.run("-p", f"[[tool {given}]]")
        assert status == 0 and said in out


def test_the_version_brings_tools_that_run_as_programs(native: Native) -> None:
    native.put(
        "tools/count.py",
        "# /// tool\n# description: Count words\n# parameters:\n#   text: {type: string}\n# ///\n"
        "import json, sys\nprint(json.dumps({'result': str(len(json.load(sys.stdin)['text'].split()))}))\n",
    )
    native.put("tools/bad.sh", "# /// tool\n# description: Fails\n# ///\necho why >&2\nexit 4\n")
    native.put("tools/mute.sh", "echo no head\n")
    status, out, err = native.run("-p", '[[tool count {"text": "a b c"}]]')
    assert (status, out) == (0, "The tool said: 3\n")
    assert "tools/mute.sh is left out: the tool does not say what it is" in err
    offered = {tool["function"]["name"]: tool["function"] for tool in native.requests()[0]["tools"]}
    assert offered["count"]["description"] == "Count words" and offered["count"]["parameters"]["required"] == ["text"]
    native.run("-p", "[[tool bad {}]]")
    assert native.requests()[-1]["messages"][-1]["content"] == "the tool bad ended with status 4:\nwhy"


def test_hooks_block_a_tool_change_its_result_and_add_a_note(native: Native) -> None:
    native.put(
        "hooks/guard.py",
        "# /// hook\n# events: [before_tool]\n# tools: [bash]\n# ///\n"
        "import json, sys\ngiven = json.load(sys.stdin)\n"
        "print(json.dumps({'block': 'no'} if 'rm' in given['arguments']['command'] else {}))\n",
    )
    native.put(
        "hooks/mark.sh", '# /// hook\n# events: [after_tool]\n# tools: [read]\n# ///\necho \'{"result": "hidden"}\'\n'
    )
    native.put("hooks/note.sh", '# /// hook\n# events: [turn_start]\n# ///\necho \'{"note": "it is Monday"}\'\n')
    native.put("hooks/end.sh", f"# /// hook\n# events: [turn_end]\n# ///\ncat > {native.project}/ended\n")
    assert native.run("-p", '[[tool bash {"command": "rm -r x"}]]')[1] == "The tool said: not done: no\n"
    assert native.run("-p", '[[tool bash {"command": "echo fine"}]]')[1] == "The tool said: fine\n"
    (native.project / "f").write_text("secret\n")
    assert native.run("-p", '[[tool read {"path": "f"}]]')[1] == "The tool said: hidden\n"
    assert native.requests()[0]["messages"][0]["content"].endswith("For this turn:\nit is Monday")
    ended = json.loads((native.project / "ended").read_text())
    assert (ended["event"], ended["text"]) == ("turn_end", "The tool said: hidden")


def test_a_hook_that_fails_before_a_tool_blocks_it(native: Native) -> None:
    native.put("hooks/guard.sh", "# /// hook\n# events: [before_tool]\n# ///\necho broken >&2\nexit 1\n")
    _, out, err = native.run("-p", '[[tool bash {"command": "touch made"}]]')
    assert out == "The tool said: not done: the hook guard ended with status 1: broken\n"
    assert "the hook guard ended with status 1: broken" in err and not (native.project / "made").exists()


def test_an_agent_has_its_own_prompt_and_tools_and_its_answer_is_the_result(native: Native) -> None:
    native.put("agents/reader.md", "---\ndescription: looks things up\ntools: [read]\n---\nYou only read.\n")
    _, out, _ = native.run("-p", '[[tool reader {"task": "find it"}]]')
    assert out == "The tool said: You said: find it\n"
    main, inner, closing = native.requests()
    assert inner["messages"][0]["content"].startswith("You only read.")
    assert [tool["function"]["name"] for tool in inner["tools"]] == ["read"]
    assert "reader" in [tool["function"]["name"] for tool in main["tools"]]
    assert [message["role"] for message in closing["messages"]] == ["system", "user", "assistant", "tool"]


def test_a_graph_hands_results_from_node_to_node(native: Native) -> None:
    native.put("agents/reader.md", "---\ndescription: reads\n---\nYou only read.\n")
    graph = {
        "description": "two views",
        "nodes": [{"id": "first", "agent": "reader"}, {"id": "then", "prompt": "You put it together."}],
        "edges": [["first", "then"]],
    }
    native.put("graphs/both.json", json.dumps(graph))
    _, out, _ = native.run("-p", '[[tool both {"task": "look"}]]')
    assert out == "The tool said: You said: look\n"
    second = native.requests()[2]
    assert "tools" not in second and second["messages"][0]["content"].startswith("You put it together.")
    assert second["messages"][1]["content"] == "look\n\nResult of first:\nYou said: look"


def test_what_the_server_refuses_is_one_line_and_the_session_goes_on(native: Native) -> None:
    status, out, err = native.run("-p", "[[status 529]] [[say the kitchen is closed]]")
    assert (status, out, err) == (1, "", "error: the kitchen is closed\n")
    assert native.run("--continue", "-p", "again")[0] == 0
    # Words without an answer are not sent twice.
    assert [message["role"] for message in native.requests()[-1]["messages"]] == ["system", "user"]


@pytest.mark.parametrize(
    "words", ["[[die after 1]]", "[[error after 1]]", "[[error first]]", "[[no done]] [[no finish]]"]
)
def test_a_reply_that_does_not_come_to_its_end_is_an_error(native: Native, words: str) -> None:
    status, _, err = native.run("-p", f"{words} hello")
    assert status == 1 and err.startswith("error: ")


def test_json_lines_tell_what_happens(native: Native) -> None:
    status, out, err = native.run("--json", "-p", '[[tool bash {"command": "echo hi"}]]')
    events = [json.loads(line) for line in out.splitlines()]
    kinds = [event["type"] for event in events if event["type"] != "text"]
    assert (status, err) == (0, "")
    assert kinds == ["session", "reply", "tool", "result", "reply"]
    assert events[0]["id"] == native.session()[0]["id"]
    text = "".join(event["text"] for event in events if event["type"] == "text")
    assert text == "The tool said: hi" == events[-1]["text"]


def test_nothing_of_the_model_or_of_a_tool_steers_the_terminal(native: Native) -> None:
    native.put("commands/evil.md", "[[say a\x1b]0;title\x07b\u202ec]]\n")
    _, out, _ = native.run("-p", "/evil")
    assert "\x1b" not in out and "\u202e" not in out and "a␛]0;title␇b" in out
    _, out, err = native.run("-p", '[[tool bash {"command": "printf \'\\\\033[2Jx\'; false"}]]')
    assert "\x1b" not in out + err


def test_without_the_wrapper_it_does_not_start(native: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REEF_SESSION")
    status, _, err = native.run("-p", "hi")
    assert status == 2 and err.startswith("error: reef's own agent runs only as reef-native")


def test_an_empty_prompt_and_an_unknown_option_are_refused(native: Native) -> None:
    assert native.run("-p", " ")[0] == 1
    assert native.run("--nope")[2] == "error: there is no option --nope\nhint: reef-native --help\n"
    assert native.run("--session")[0] == 2
    assert native.requests() == []


def test_a_program_that_reads_only_the_beginning_ends_the_run_without_a_traceback(native: Native) -> None:

    line = f"{sys.executable} -P -m reef.native -p '[[paced 3000 0ms]]' | head -c 5"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert (done.stdout, done.stderr) == ("word0", "")
