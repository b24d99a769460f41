"""The child process that holds the embedded model: llama.cpp's own HTTP server on a loopback port.

`python -m reef.engines.embedded_worker REPORT_FD` reads one line of JSON from standard input
(`{"model", "alias", "context", "answer", "slots", "threads", "key"}`), writes one line to the inherited descriptor
(`{"listening": "http://127.0.0.1:PORT"}` or `{"error": "…"}`) and serves until standard input closes, which happens
at the latest when the parent ends, however it ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

from reef.engines.lifeline import end_with_parent


def read_job() -> dict[str, Any]:
    """The first line of standard input, byte by byte so that nothing of the rest is taken."""
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            os._exit(0)
        line += piece
    job = json.loads(line)
    if not isinstance(job, dict):
        raise ValueError("the job is not an object")
    return job


def start_server(job: dict[str, Any]) -> Any:
    """Load the model and listen. Returns the server, which must be kept. Raises RuntimeError or ImportError."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = job["model"]
    parameters.model_alias = {job["alias"]}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [job["key"]]
    parameters.n_ctx = job["context"]
    parameters.n_predict = job["answer"]
    parameters.n_parallel = job["slots"]
    parameters.cpuparams.n_threads = job["threads"]
    parameters.cpuparams_batch.n_threads = job["threads"]
    parameters.use_jinja = True
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.verbosity = 1
    return xllamacpp.Server(parameters)


def main() -> None:
    """Serve until the parent is gone."""
    # A Ctrl-C in the terminal is for the daemon, which ends this process in its own order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    report = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")
    job = read_job()
    end_with_parent()
    try:
        server = start_server(job)
        fact = {"listening": server.listening_address}
    except Exception as error:
        fact = {"error": f"{type(error).__name__}: {error}"}
    report.write(json.dumps(fact) + "\n")
    report.close()
    if "error" in fact:
        sys.exit(1)
    threading.Event().wait()


if __name__ == "__main__":
    main()
