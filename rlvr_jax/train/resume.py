"""A run folder continues the run that made it, or refuses."""

import hashlib
import json
import pathlib
from collections.abc import Sequence
from typing import Any

from rlvr_jax import config as config_lib
from rlvr_jax.config import Config
from rlvr_jax.data.rows import Problem
from rlvr_jax.train.checkpoint import SPOILT
from rlvr_jax.train.metrics import steps_recorded
from rlvr_jax.validate import ConfigError

FREE = (
    "run_dir",
    "logging.",
    "checkpoint.",
    "evaluation.",
    "mesh.",
    "replay.",
    "rollout.prompts_at_once",
    "reward.execution",
    "reward.workers",
    "reward.timeout_s",
    "reward.max_failure_rate",
    "reward.check_references",
    "audit.",
    "judge.url",
    "judge.api_key_env",
    "judge.concurrency",
    "judge.timeout_s",
    "judge.retries",
    "judge.price_",
    "batch.micro_batch_size",
    "batch.logprob_chunk_tokens",
    "batch.packing",
    "model.remat",
)
"""Settings that may change on resume: they do not change what is learned, beyond
float32 rounding."""
REMEDIES = (
    "curriculum.max_generation_batches",
    "curriculum.when_short",
    "curriculum.drop_pass_rate",
    "curriculum.min_pass_rate",
    "curriculum.max_pass_rate",
)
"""These do; they may change as a run that its rules have ended could not go on."""


def check_same_run(config: Config, folder: pathlib.Path) -> None:
    """Raises a ConfigError that lists settings which differ from the folder's own.

    `steps` may change too, unless the learning rate depends on it or batches are
    sampled ahead; evaluations may not where they decide on resets.
    """
    path = folder / "config.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        return
    try:
        saved = json.loads(path.read_text(encoding="utf8"))
        if not isinstance(saved, dict):
            raise ValueError(f"it holds {saved!r:.40}, no settings")
    except ValueError as error:
        raise ConfigError(
            f"run_dir={folder}: {path.name} is not readable ({error}); remove the "
            "folder or choose another --config.run_dir."
        ) from error
    free = _free(config)
    changed = {
        name: pair
        for name, pair in config_lib.differences(
            config_lib.to_dict(config), saved
        ).items()
        if not name.startswith(free)
    }
    for name in [name for name in changed if name in REMEDIES]:
        now, before = changed.pop(name)
        print(f"{name}: {before!r} before, {now!r} from here on", flush=True)
    if changed:
        lines = "\n".join(
            f"  {name}: {before!r} there, {now!r} now"
            for name, (now, before) in changed.items()
        )
        raise ConfigError(
            f"run_dir={folder} holds a run with other settings:\n{lines}\nGive those "
            "values to continue it, or choose another --config.run_dir."
        )


def _free(config: Config) -> tuple[str, ...]:
    """Beginnings of the settings that may change on resume."""
    free = FREE
    # The last batches of a run with staleness are of other policies in a longer one.
    if config.optimizer.schedule == "constant" and config.rollout.staleness == 0:
        free = (*free, "steps")
    if config.objective.reset_after_evaluations > 0:
        free = tuple(name for name in free if name != "evaluation.")
    return free


def check_steps(steps: int, latest: int | None) -> None:
    """Raises a ConfigError where the run has gone further than it is to go."""
    if latest is not None and latest > steps:
        raise ConfigError(
            f"steps={steps}, and the run has done {latest}: give {latest} or more, or "
            "choose another --config.run_dir."
        )


def check_not_lost(folder: pathlib.Path, latest: int | None, every_steps: int) -> None:
    """Raises a ConfigError where a run would begin again although it had checkpoints.

    From step 0 it would erase its records.

    Args:
      folder: of the run.
      latest: its newest checkpoint.
      every_steps: steps between checkpoints; 0: only at the end.
    """
    if latest is not None:
        return
    traces = []
    if any((folder / SPOILT).glob("*")):
        traces.append(f"{SPOILT}/ holds some")
    if (folder / "summary.json").exists():
        traces.append("summary.json is written after the last one")
    recorded = steps_recorded(folder / "metrics.jsonl")
    # The first may be lost to a kill while it is written; once the second has begun it
    # is whole, and that is before the next step but one.
    if every_steps > 0 and recorded > 2 * every_steps + 1:
        traces.append(f"metrics.jsonl has {recorded} steps")
    if traces:
        raise ConfigError(
            f"run_dir={folder}: its checkpoints are gone ({'; '.join(traces)}). From "
            "step 0 the run would write over its records: put the checkpoints back, or "
            "remove the folder, or choose another --config.run_dir."
        )


def fingerprint(problems: Sequence[Problem]) -> dict[str, Any]:
    """Count and hash of the training problems, in their order."""
    digest = hashlib.sha256()
    for problem in problems:
        parts = [
            problem.id,
            problem.question,
            problem.answer,
            problem.verifier,
            problem.meta,
        ]
        digest.update(json.dumps(parts, default=str).encode() + b"\n")
    return {"count": len(problems), "sha256": digest.hexdigest()}


def check_same_problems(
    problems: Sequence[Problem], saved: dict[str, Any] | None
) -> None:
    """Raises a ConfigError where a checkpoint was made with other problems.

    A file that was cut off at the end of a line, or edited, would silently give
    another order of the data.

    Args:
      problems: of the run now.
      saved: `fingerprint` of those before; None in checkpoints that have none.
    """
    now = fingerprint(problems)
    if saved is None or saved == now:
        return
    counts = f"{saved['count']} then, {now['count']} now"
    if saved["count"] == now["count"]:
        counts = f"{now['count']} both times, not the same"
    raise ConfigError(
        f"data.train: the training problems changed since the checkpoint ({counts}). "
        "Put the file back as it was, or choose another --config.run_dir."
    )
