"""A coding agent in a few lines, in the place of pi: reads the same home, sends one request, prints the reply.

Words in AGENTS.md make it misbehave: `[[crash]]` ends with status 3, `[[hang]]` never ends, `[[silent]]` sends nothing.
Run as `agent_fake.py -p PROMPT`; other arguments are printed back with the environment.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from pathlib import Path


def main() -> int:
    home = Path(os.environ["PI_CODING_AGENT_DIR"])
    rules = (home / "AGENTS.md").read_text() if (home / "AGENTS.md").is_file() else ""
    if sys.argv[1:2] != ["-p"]:
        print(json.dumps({"env": dict(os.environ), "argv": sys.argv[1:]}))
        return 0
    if "[[crash]]" in rules:
        print("the rules made me crash", file=sys.stderr)
        return 3
    if "[[hang]]" in rules:
        time.sleep(300)
    if "[[silent]]" in rules:
        return 0
    provider = json.loads((home / "models.json").read_text())["providers"]["reef"]
    messages = [{"role": "system", "content": rules}, {"role": "user", "content": sys.argv[2]}]
    body = json.dumps({"model": provider["models"][0]["id"], "stream": False, "messages": messages}).encode()
    request = urllib.request.Request(f"{provider['baseUrl']}/chat/completions", body)
    with urllib.request.urlopen(request, timeout=30) as reply:
        print(json.load(reply)["choices"][0]["message"]["content"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
