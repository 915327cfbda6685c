"""Published pipelines as stages: what each one learns from, and what it starts from.

R1-Zero and R1 are often taken for one another: the first is reinforcement learning on a
base model and nothing else, the second has four stages of which two are supervised, and
its third starts from the base again, on data that the second one's model wrote.

References:
  DeepSeek-R1. https://arxiv.org/abs/2501.12948
  Qwen3. https://arxiv.org/abs/2505.09388
"""

import dataclasses
from collections.abc import Sequence

BASE = "base"
SUPERVISED, REINFORCED = "supervised", "reinforced"


@dataclasses.dataclass(frozen=True)
class Stage:
    """One training run of several."""

    name: str
    kind: str
    """SUPERVISED or REINFORCED."""
    start: str
    """BASE, or the stage whose model it goes on from."""
    data: str
    written_by: str = ""
    """The stage whose model writes its data; "" where no model of the pipeline does."""
    modes: bool = False
    """Whether those rows ask for thoughts or none, as launch.demonstrate --modes."""
    rewards: tuple[str, ...] = ()
    """Of a reinforced stage, as reward.parts names them; "preference" is a learned
    reward model."""


PIPELINES: dict[str, tuple[Stage, ...]] = {
    "r1_zero": (
        Stage(
            "reasoning RL",
            REINFORCED,
            BASE,
            "verifiable problems",
            rewards=("answer", "format:think_answer"),
        ),
    ),
    "r1": (
        Stage("cold start", SUPERVISED, BASE, "thousands of long chains of thought"),
        Stage(
            "reasoning RL",
            REINFORCED,
            "cold start",
            "verifiable problems",
            rewards=("answer", "format:think_answer", "language"),
        ),
        Stage(
            "rejection sampling",
            SUPERVISED,
            BASE,
            "600k correct chains, 200k other rows",
            written_by="reasoning RL",
        ),
        Stage(
            "all scenarios",
            REINFORCED,
            "rejection sampling",
            "verifiable and general prompts",
            rewards=("answer", "format:think_answer", "language", "preference"),
        ),
    ),
    "qwen3": (
        Stage("long-CoT cold start", SUPERVISED, BASE, "long chains of thought"),
        Stage(
            "reasoning RL",
            REINFORCED,
            "long-CoT cold start",
            "3,995 verifiable problems",
            rewards=("answer",),
        ),
        Stage(
            "thinking-mode fusion",
            SUPERVISED,
            "reasoning RL",
            "rows with /think and /no_think",
            written_by="reasoning RL",
            modes=True,
        ),
        Stage(
            "general RL",
            REINFORCED,
            "thinking-mode fusion",
            "more than 20 tasks",
            rewards=("answer", "format:think_answer", "preference"),
        ),
    ),
}


def check(stages: Sequence[Stage]) -> None:
    """Refuses stages that cannot be run one after the other.

    Raises:
      ValueError: no stage, a name used twice, a start or writer that no earlier stage
        has, an unknown kind, or rewards that do not go with the kind.
    """
    earlier: list[str] = []
    if not stages:
        raise ValueError("pipeline: has no stage")
    for stage in stages:
        if stage.name in (BASE, *earlier):
            raise ValueError(f"pipeline: two stages are called {stage.name!r}")
        for role, name in (("start", stage.start), ("written_by", stage.written_by)):
            if name not in (BASE, "", *earlier) or (role == "start" and not name):
                raise ValueError(
                    f"pipeline: {role}={name!r} of {stage.name!r} is no earlier stage; "
                    f"there are {', '.join((BASE, *earlier))}"
                )
        if stage.kind not in (SUPERVISED, REINFORCED):
            raise ValueError(f"pipeline: {stage.name!r} is of no kind: {stage.kind!r}")
        if bool(stage.rewards) != (stage.kind == REINFORCED):
            raise ValueError(f"pipeline: {stage.name!r} is {stage.kind}: mend rewards")
        earlier.append(stage.name)


def lineage(stages: Sequence[Stage], name: str) -> list[str]:
    """The stages whose updates a stage's model carries, from the base on.

    Example:
      >>> lineage(PIPELINES["r1"], "all scenarios")
      ['base', 'rejection sampling', 'all scenarios']
    """
    by_name = {stage.name: stage for stage in stages}
    found = [name]
    while found[0] != BASE:
        found.insert(0, by_name[found[0]].start)
    return found
