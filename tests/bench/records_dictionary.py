"""Trains the dictionary that bodies are compressed with: `python -m tests.bench.records_dictionary FILE`.

It learns from what agents send in every dialect, filled with this tree's own prose and code, and with what a shell
answers. A dictionary that a reef has been published with is never changed, as stores hold what it compressed: another
one gets another name in `reef.records.parts`.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

ROOT = Path(__file__).parents[2]
SIZE = 16 * 1024
ROUNDS = 400
_PROSE = ("README.md", "reef/help/*.md", "recipes/*/*.md", "recipes/*/*/*.md", "adapters/*/*.md")
_CODE = ("reef/*/*.py", "recipes/*/*.py", "adapters/*/*.py", "adapters/*/*.ts", "install.sh", "pyproject.toml")
_PATHS = ("src/app/main.py", "README.md", "tests/test_store.py", "lib/index.ts", "package.json", "docs/usage.md")
_COMMANDS = (
    "pytest -q -x tests", "git status --short", "git diff HEAD~1", "ls -la", "npm test", "grep -rn deprecated src",
    "cat package.json | head -50", "cargo build 2>&1 | tail -20", "python -m pip install -e .", "sed -n 1,80p main.go",
)  # fmt: skip


class Samples:
    """Parts of bodies as the store cuts them: a message or two, tools, the beginning of a request, a reply."""

    def __init__(self) -> None:
        self.chance = random.Random(4)
        self.prose = self._texts(_PROSE)
        self.code = self._texts(_CODE)

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(ROUNDS):
            for make in (self._chat, self._messages, self._responses):
                for value in make():
                    # What agents write in JavaScript has no blanks, Python's own JSON has them.
                    marks = (",", ":") if self.chance.random() < 0.75 else (", ", ": ")
                    yield json.dumps(value, ensure_ascii=False, separators=marks).encode()

    def _texts(self, patterns: tuple[str, ...]) -> list[str]:
        files = sorted(file for pattern in patterns for file in ROOT.glob(pattern))
        return [text for file in files if len(text := file.read_text(encoding="utf-8")) > 2000]

    def _piece(self, texts: list[str], low: int, high: int) -> str:
        text, size = self.chance.choice(texts), self.chance.randint(low, high)
        at = self.chance.randrange(max(1, len(text) - size))
        return text[at : at + size]

    def _words(self) -> str:
        return self._piece(self.prose, 40, 400)

    def _result(self) -> str:
        text = self._piece(self.code, 200, 1800)
        kind = self.chance.randrange(4)
        if kind == 0:
            return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(text.splitlines(), 1))
        if kind == 1:
            return "".join(f"{self.chance.choice(_PATHS)}:{9 * n}:{line}\n" for n, line in enumerate(text.splitlines()))
        if kind == 2:
            lines = "".join(f"{self.chance.choice(' +-')}{line}\n" for line in text.splitlines())
            path = self.chance.choice(_PATHS)
            files = f"diff --git a/{path} b/{path}\nindex 3f1..b2c 100644\n--- a/{path}\n+++ b/{path}\n"
            return f"{files}@@ -1,7 +1,9 @@\n{lines}"
        return text

    def _call(self) -> tuple[str, dict[str, Any]]:
        path = self.chance.choice(_PATHS)
        calls: list[tuple[str, dict[str, Any]]] = [
            ("bash", {"command": self.chance.choice(_COMMANDS), "timeout": 120}),
            ("read", {"path": path, "offset": self.chance.randrange(900), "limit": 200}),
            ("Read", {"file_path": f"/workspace/project/{path}"}),
            ("Edit", {"file_path": path, "old_string": self._piece(self.code, 40, 300), "new_string": "return None\n"}),
            ("edit", {"path": path, "oldText": self._piece(self.code, 40, 300), "newText": "pass\n"}),
            ("write", {"path": path, "content": self._piece(self.code, 100, 800)}),
            ("Grep", {"pattern": "def main", "path": ".", "output_mode": "content"}),
            ("exec_command", {"cmd": self.chance.choice(_COMMANDS), "yield_time_ms": 1000}),
        ]
        return self.chance.choice(calls)

    def _id(self, prefix: str) -> str:
        return prefix + self.chance.randbytes(12).hex()

    def _fields(self) -> dict[str, Any]:
        _, arguments = self._call()
        fields = {name: {"type": "string", "description": self._piece(self.prose, 20, 120)} for name in arguments}
        return {"type": "object", "properties": fields, "required": list(fields)[:1], "additionalProperties": False}

    def _chat(self) -> Iterator[Any]:
        name, arguments = self._call()
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls = [{"id": self._id("call_"), "type": "function", "function": function}]
        said = {"role": "assistant", "content": self._words(), "tool_calls": calls}
        yield said
        yield {"role": "tool", "tool_call_id": self._id("call_"), "content": self._result()}
        yield {"role": "user", "content": self._words()}
        yield {"model": "m", "messages": [{"role": "system", "content": self._words()}], "stream": True,
               "stream_options": {"include_usage": True}, "max_tokens": 4096, "temperature": 0.7}  # fmt: skip
        described = {"name": name, "description": self._words(), "parameters": self._fields(), "strict": False}
        yield {"type": "function", "function": described}
        used = {"prompt_tokens": self.chance.randrange(90000), "completion_tokens": 77, "total_tokens": 9000,
                "prompt_tokens_details": {"cached_tokens": 0}}  # fmt: skip
        for message, reason in ((said, "tool_calls"), ({"role": "assistant", "content": self._words()}, "stop")):
            choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
            yield {"id": self._id("chatcmpl-"), "object": "chat.completion", "created": 1700000000, "model": "m",
                   "choices": [choice], "usage": used}  # fmt: skip

    def _messages(self) -> Iterator[Any]:
        name, arguments = self._call()
        use = {"type": "tool_use", "id": self._id("toolu_"), "name": name, "input": arguments}
        blocks = [{"type": "text", "text": self._words()}, use]
        yield {"role": "assistant", "content": blocks}
        block = {"type": "tool_result", "tool_use_id": self._id("toolu_"), "content": self._result()}
        yield {"role": "user", "content": [block]}
        marked = block | {"is_error": False, "cache_control": {"type": "ephemeral"}}
        yield {"role": "user", "content": [marked]}
        yield {"role": "user", "content": [{"type": "text", "text": f"<system-reminder>\n{self._words()}"}]}
        yield {"name": name, "description": self._words(), "input_schema": self._fields()}
        used = {"input_tokens": 12, "cache_creation_input_tokens": 900, "cache_read_input_tokens": 15000,
                "output_tokens": 120}  # fmt: skip
        thinking = {"type": "thinking", "thinking": self._words(), "signature": ""}
        for content, reason in ((blocks, "tool_use"), ([thinking, blocks[0]], "end_turn")):
            yield {"id": self._id("msg_"), "type": "message", "role": "assistant", "model": "m", "content": content,
                   "stop_reason": reason, "stop_sequence": None, "usage": used}  # fmt: skip

    def _responses(self) -> Iterator[Any]:
        name, arguments = self._call()
        call = {"type": "function_call", "id": self._id("fc_"), "call_id": self._id("call_"), "name": name,
                "arguments": json.dumps(arguments), "status": "completed"}  # fmt: skip
        text = {"type": "output_text", "text": self._words(), "annotations": []}
        said = {
            "type": "message",
            "id": self._id("msg_"),
            "role": "assistant",
            "status": "completed",
            "content": [text],
        }
        reasoning: dict[str, Any] = {
            "type": "reasoning",
            "id": self._id("rs_"),
            "summary": [],
            "encrypted_content": None,
        }
        yield [reasoning, said, call]
        yield {"type": "function_call_output", "call_id": self._id("call_"), "output": self._result()}
        yield {"type": "message", "role": "user", "content": [{"type": "input_text", "text": self._words()}]}
        yield {"type": "function", "name": name, "description": self._words(), "strict": False,
               "parameters": self._fields()}  # fmt: skip
        used = {"input_tokens": 9000, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 120,
                "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 9120}  # fmt: skip
        yield {"id": self._id("resp_"), "object": "response", "created_at": 1700000000, "status": "completed",
               "error": None, "incomplete_details": None, "instructions": None, "model": "m",
               "output": [reasoning, said, call], "parallel_tool_calls": True, "previous_response_id": None,
               "store": False, "temperature": 1.0, "tool_choice": "auto", "tools": [], "usage": used}  # fmt: skip


def main() -> None:
    """Train on the samples and write the dictionary."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.records_dictionary")
    parser.add_argument("file", type=Path)
    asked = parser.parse_args()
    samples: list[bytes | bytearray | memoryview[int]] = [*Samples()]
    trained = zstandard.train_dictionary(SIZE, samples, level=3, dict_id=1)
    asked.file.write_bytes(trained.as_bytes())
    print(f"{len(samples)} samples of {sum(map(len, samples)) / 1e6:.1f} MB: {len(trained.as_bytes())} bytes")


if __name__ == "__main__":
    main()
