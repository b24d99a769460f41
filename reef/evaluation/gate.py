"""The gate: which groups of checks a policy asks for, and what follows from them.

Policy `reach`: `admission`, then `reach`. Both must pass. A group whose forerunner did not pass is `not run`.
"""

from __future__ import annotations

from pathlib import Path

from reef.errors import ConfigError
from reef.evaluation.reach import Activity, reach
from reef.evaluation.result import Decision, Evaluation, Group
from reef.harness.adapter_file import Adapter
from reef.harness.admission import Admission
from reef.harness.tree import Tree
from reef.paths import Paths

POLICIES = ("reach",)
"""The policies that can be asked for."""


def evaluate(
    policy: str,
    current: Tree,
    admission: Admission,
    adapter: Adapter,
    paths: Paths,
    folder: Path | None = None,
    activity: Activity | None = None,
) -> Evaluation:
    """Run the policy's groups on an admitted change.

    `admission` is what `reef.harness.admission.admit` made of the change to `current`. `folder` is the step's folder,
    which keeps the requests that were seen; `activity` is told each thing as it happens, `(kind, text, failed)`.
    Raises ConfigError for a policy that does not exist.
    """
    if policy not in POLICIES:
        raise ConfigError(f"there is no policy {policy!r} (policies: {', '.join(POLICIES)})")
    admitted = Group("admission", "pass" if admission.ok else "fail", admission.detail)
    if admission.tree is None:
        return Evaluation(policy, [admitted, Group("reach", "not run", "the change was not admitted")])
    return Evaluation(policy, [admitted, reach(current, admission.tree, adapter, paths, folder, activity)])


def decide(evaluation: Evaluation) -> Decision:
    """What follows: publish when every group passed, else the first group that did not, with its reason."""
    for group in evaluation.groups:
        if group.status == "fail":
            return Decision("reject", f"{group.name}: {group.detail}")
        if group.status != "pass":
            return Decision("could_not_evaluate", f"{group.name}: {group.detail}")
    return Decision("publish", "; ".join(f"{group.name}: {group.detail}" for group in evaluation.groups))
