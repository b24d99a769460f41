"""One step in a process of its own: `python -m reef.learning.step --frames FD --alive FD`, the job on standard input.

It loads the recipe, grows a candidate, has it admitted and evaluated, and sends the result over the frame pipe. It
reads the database read-only and writes only into its step folder; the daemon alone publishes. Standard output belongs
to the recipe.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from reef.credentials import clean_json
from reef.errors import ReefError
from reef.evaluation import gate
from reef.harness.adapter import load_adapter, readable_adapters
from reef.harness.admission import admit
from reef.harness.tree import Tree
from reef.learning import inputs, keeper
from reef.learning.context import Context
from reef.learning.frames import FramePipe, Outcome, Result, whole_pairs
from reef.learning.job import Job
from reef.learning.loader import load_recipe
from reef.learning.manifest import manifest
from reef.learning.models import Budget, Model, Models
from reef.learning.recipe import Batch, Candidate, Recipe, Skip
from reef.paths import Paths
from reef.records.reader import Reader

_OUTCOMES: dict[str, Outcome] = {
    "publish": "candidate",
    "reject": "rejected",
    "could_not_evaluate": "could_not_evaluate",
}


def run(job: Job, pipe: FramePipe, paths: Paths) -> Result:
    """Do the whole step and return its result. Raises whatever the recipe raises."""
    recipe = load_recipe(job.recipe, job.config, paths)
    wanted = manifest(job.recipe, paths)
    reader = Reader(job.database)
    budget = Budget(job.max_calls)
    served = Model(job.url, job.token, job.model, budget, job.folder / "proposer.jsonl", job.model_timeout_s)
    try:
        context = Context(
            scenario=job.scenario,
            step=job.step,
            models=Models(served),
            tree=Tree.from_json(job.tree),
            adapter=load_adapter(job.adapter, paths),
            proposer=job.proposer,
            proposer_why=job.proposer_why,
            policy=job.policy,
            budget=budget,
            rejected=job.rejected,
            state=job.state,
            reader=reader,
            folder=job.folder,
            paths=paths,
            say=pipe.activity,
        )
        pipe.send({"type": "phase", "phase": "proposing"})
        samples = [sample for item in inputs.gather(job, wanted, reader) if (sample := recipe.eligible(item))]
        batch = recipe.batch(samples)
        if batch is None:
            return Result(outcome="skipped", reason="the recipe made no batch of what there is")
        grown = recipe.grow(batch, context)
        if isinstance(grown, Skip):
            return Result(
                outcome="skipped",
                reason=grown.reason,
                consumed=batch.inputs,
                notes=dict(grown.notes),
                state=grown.state,
                metrics=_spent(budget),
            )
        return _judge(recipe, grown, batch, context, pipe)
    finally:
        served.close()
        reader.close()


def _judge(recipe: Recipe, candidate: Candidate, batch: Batch, context: Context, pipe: FramePipe) -> Result:
    """Admission, evaluation, decision."""
    mutations = whole_pairs([dict(mutation) for mutation in candidate.mutations])
    facts: dict[str, Any] = {
        "summary": candidate.summary,
        "mutations": mutations,
        "consumed": batch.inputs,
        "requires": [dict(item) for item in candidate.requires],
        "notes": dict(candidate.notes),
        "metrics": {**candidate.metrics, **_spent(context.budget)},
        "state": candidate.state,
    }
    _keep(context.folder / "mutations.json", mutations)
    pipe.send({"type": "step", "fields": {"summary": candidate.summary, "mutations": mutations}})
    pipe.send({"type": "phase", "phase": "evaluating"})
    again = _repeated(mutations, context)
    if again is not None:
        context.activity("admission", again, True)
        groups = [
            {"name": "admission", "status": "fail", "detail": again, "seconds": 0.0, "checks": []},
            {"name": context.policy, "status": "not run", "detail": "the change was refused before", "seconds": 0.0},
        ]
        return Result(
            outcome="rejected", reason=again, evaluation={"policy": context.policy, "groups": groups}, **facts
        )
    admission = admit(context.tree, mutations, context.adapter, readable_adapters(context.paths))
    context.activity("admission", admission.detail, not admission.ok)
    evaluation = recipe.evaluate(candidate, context) if admission.ok else None
    if evaluation is None:
        evaluation = gate.evaluate(
            context.policy, context.tree, admission, context.adapter, context.paths, context.folder, context.activity
        )
    for episode in evaluation.episodes:
        pipe.send({"type": "episode", "fields": episode})
    # A recipe's own rule judges candidates; what was not admitted is none.
    decision = (recipe.decide(evaluation, context) if admission.ok else None) or gate.decide(evaluation)
    pipe.send({"type": "phase", "phase": "settling"})
    tree = admission.tree.to_json() if admission.tree is not None else None
    outcome = _OUTCOMES[decision.outcome]
    if outcome == "candidate" and tree is None:
        outcome = "rejected"
    return Result(
        outcome=outcome,
        reason=decision.reason,
        tree=tree,
        evaluation=evaluation.to_json(),
        pending=admission.code_bearing,
        **facts,
    )


def _repeated(mutations: list[dict[str, Any]], context: Context) -> str | None:
    """Why a change need not run: checks have refused exactly this one before."""
    for old in reversed(context.rejected):
        if old.ran and _canonical(old.mutations) == _canonical(mutations):
            return f"no new change: step {old.step} made exactly this one, and it was refused ({old.reason})"
    return None


def _canonical(mutations: Any) -> str:
    return json.dumps([dict(mutation) for mutation in mutations], sort_keys=True)


def _spent(budget: Budget) -> dict[str, float]:
    return {"model_calls": budget.spent_calls, "model_tokens": budget.spent_tokens}


def _keep(file: Path, value: Any) -> None:
    text = json.dumps(clean_json(json.loads(json.dumps(value))), ensure_ascii=False, indent=2)
    file.write_text(text + "\n", encoding="utf-8")


def _told(error: BaseException) -> str:
    """An unexpected error in one line: its kind, its words, and where in the recipe it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}{place}"


def _die_first() -> None:
    """Have this process die before the daemon when memory runs out."""
    if sys.platform.startswith("linux"):
        Path("/proc/self/oom_score_adj").write_text("1000")


def main() -> int:
    """Read the job, run it, send the result."""
    parser = argparse.ArgumentParser(prog="python -m reef.learning.step")
    parser.add_argument("--frames", type=int, required=True)
    parser.add_argument("--alive", type=int, required=True)
    options = parser.parse_args()
    keeper.go_below(options.alive, options.frames)
    _die_first()
    pipe = FramePipe(options.frames)
    try:
        job = Job.model_validate_json(sys.stdin.buffer.read())
        result = run(job, pipe, Paths.from_environ())
    except ReefError as error:
        traceback.print_exc()
        result = Result(outcome="failed", reason=error.message)
    except Exception as error:
        # The boundary to code that anybody may have written: whatever it raises ends this step and nothing else.
        traceback.print_exc()
        result = Result(outcome="failed", reason=_told(error))
    pipe.send(result.model_dump())
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # A thread that a recipe left running must not keep the step alive.
    os._exit(status)
