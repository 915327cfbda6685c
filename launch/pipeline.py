"""Runs a published pipeline, stage after stage, each a command of its own.

python -m launch.pipeline --pipeline r1 --config configs/quickstart.py --dry-run
python -m launch.pipeline --pipeline r1 --config configs/quickstart.py

The stages are those of rlvr_jax/planning/pipelines.py; size, data and objective are the
recipe's, and flags of launch.train (--config.steps=20) hold for all stages that read
them. A finished stage is not run again: the same command goes on after a stop.

Where a stage thinks or not by a flag (qwen3), leave room for it: 12 tokens of prompt,
and 20 of completion, more than the recipe has, of a tokenizer of characters.

Departs from the papers: a reward "preference" is left out unless --preference names
what pays for it, and all reinforced stages have the recipe's problems.
"""

import argparse
import dataclasses
import json
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from launch import cells
from launch.sweep import load_recipe, settings_of
from rlvr_jax import sweeps
from rlvr_jax.config import Config, WarmupConfig
from rlvr_jax.ignored import NEW_MODEL
from rlvr_jax.planning.pipelines import BASE, PIPELINES, SUPERVISED, Stage, check
from rlvr_jax.sweeps import Cell, Plan


@dataclasses.dataclass(frozen=True)
class Job:
    """One stage as commands: perhaps rows to write, then a training run."""

    cell: Cell
    rows: pathlib.Path | None = None
    """What the stage before writes for it."""
    demonstrate: tuple[str, ...] = ()
    """Arguments of launch.demonstrate, without --output."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what is left of a pipeline.

    Args:
      argv: the arguments after the program's name; by default those of the process.

    Returns:
      0 when every stage finished, 1 if one did not, 2 for a fault of the arguments.
    """
    arguments, rest = _parser().parse_known_args(argv)
    folder = pathlib.Path(arguments.output or f"runs/pipelines/{arguments.pipeline}")
    try:
        config = load_recipe(arguments.config).get_config()
        jobs = plan(
            PIPELINES[arguments.pipeline],
            config,
            folder,
            settings_of(rest),
            preference=arguments.preference,
            sampling=("--n", str(arguments.n)),
        )
        plan_words = [" ".join(_words(arguments.config, job)) for job in jobs]
        _check_unchanged(folder, plan_words)
    except (OSError, ValueError) as error:
        print(f"error: launch.pipeline: {error}", file=sys.stderr)
        return 2
    print("\n".join(plan_words), flush=True)
    if arguments.dry_run:
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pipeline.json").write_text(json.dumps(plan_words, indent=2) + "\n")
    finished = all(_run(arguments.config, job) for job in jobs)  # stops at the first
    print(f"model: {jobs[-1].cell.run_dir / 'model'}" if finished else "not finished")
    return 0 if finished else 1


def plan(
    stages: Sequence[Stage],
    base: Config,
    folder: pathlib.Path,
    common: Mapping[str, Any],
    *,
    preference: str = "",
    sampling: Sequence[str] = (),
) -> list[Job]:
    """The stages as jobs, in order; a new decoder is made first where there is no base.

    Args:
      stages: of a pipeline.
      base: the recipe of all stages.
      folder: each stage gets a folder below.
      common: settings of all stages.
      preference: the part of reward.parts that pays for "preference"; "" leaves it out.
      sampling: arguments of launch.demonstrate, for rows that a stage writes.

    Raises:
      ValueError: the stages do not follow, or supervised ones have no step.
    """
    check(stages)
    shared = dict(common)
    seed = int(shared.pop("seed", base.seed))
    steps = int(shared.get("warmup.steps", base.warmup.steps))
    if steps == 0 and any(stage.kind == SUPERVISED for stage in stages):
        raise ValueError(
            "the supervised stages have no step; give --config.warmup.steps=N"
        )
    jobs = []
    path = pathlib.Path(shared.pop("model.path", base.model.path))
    imitation = {k: v for k, v in shared.items() if k.startswith(sweeps.IN_START)}
    if not path.name:
        new = _without(imitation, base, "warmup", dataclasses.asdict(WarmupConfig()))
        jobs.append(Job(sweeps.cold_start(new, seed, folder / BASE, BASE)))
        path = folder / BASE / "model"
    models = {BASE: path}
    for stage in stages:
        name = stage.name.lower().replace(" ", "-")
        run_dir, start = folder / name, models[stage.start]
        models[stage.name] = run_dir / "model"
        if stage.kind == SUPERVISED:
            writer = models[stage.written_by] if stage.written_by else None
            jobs.append(_supervised(base, imitation, seed, run_dir, start, writer))
            if writer is not None:
                modes = ("--modes",) if stage.modes else ()
                asked = ("--checkpoint", str(writer.parent), *sampling, *modes)
                jobs[-1] = dataclasses.replace(jobs[-1], demonstrate=asked)
        else:
            settings = sweeps.from_model(start, shared, base)
            settings |= {"reward.parts": _parts(stage, preference)}
            settings |= {"checkpoint.export": True}
            own = {"run_dir": run_dir, "seed": seed}
            jobs.append(Job(Cell(name, run_dir, sweeps.flags_of(own | settings), "")))
    return jobs


def _supervised(
    base: Config,
    imitation: Mapping[str, Any],
    seed: int,
    run_dir: pathlib.Path,
    start: pathlib.Path,
    writer: pathlib.Path | None,
) -> Job:
    """A cold start and nothing else, from a model, on the recipe's rows or written."""
    shape = {name: getattr(type(base.model)(), name) for name in NEW_MODEL}
    settings = _without(imitation, base, "model", shape) | {"model.path": start}
    rows = None
    if writer is not None:
        rows = run_dir.with_suffix(".jsonl")
        settings |= {"data.train": rows, "data.task_options": "{}"}
    return Job(sweeps.cold_start(settings, seed, run_dir, run_dir.name), rows)


def _without(
    settings: Mapping[str, Any], base: Config, group: str, defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings, these of a group at their defaults, as nothing reads them."""
    found = {k: v for k, v in settings.items() if k not in _named(group, defaults)}
    ours = getattr(base, group)
    changed = {k: v for k, v in defaults.items() if getattr(ours, k) != v}
    return found | _named(group, changed)


def _named(group: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{group}.{name}": value for name, value in values.items()}


def _parts(stage: Stage, preference: str) -> str:
    """The stage's rewards as `reward.parts`: their plain sum."""
    parts = [preference if name == "preference" else name for name in stage.rewards]
    return ", ".join(part for part in parts if part)


def _demonstrate(job: Job, output: pathlib.Path) -> list[str]:
    program = [sys.executable, "-m", "launch.demonstrate"]
    return [*program, *job.demonstrate, "--output", str(output)]


def _words(recipe: str, job: Job) -> list[str]:
    """The job's commands as one types them."""
    commands = [cells.command(recipe, job.cell)]
    if job.rows is not None:
        commands.insert(0, _demonstrate(job, job.rows))
    return [f"{job.cell.name}:", " && ".join(shlex.join(c[1:]) for c in commands)]


def _run(recipe: str, job: Job) -> bool:
    """Whether the stage is finished, before or now."""
    if job.rows is not None and not job.rows.is_file():
        part = job.rows.with_name(f".{job.rows.name}.new")
        if subprocess.run(_demonstrate(job, part), check=False).returncode:
            print(f"{job.cell.name}: no rows to learn from", flush=True)
            return False
        part.replace(job.rows)  # all rows, or none if killed
    return not cells.run_all(recipe, Plan({}, [job.cell]), 1)


def _check_unchanged(folder: pathlib.Path, plan_words: list[str]) -> None:
    path = folder / "pipeline.json"
    if path.is_file() and json.loads(path.read_text(encoding="utf8")) != plan_words:
        raise ValueError(
            f"{folder} holds a pipeline of other settings; choose another --output, or "
            "remove that folder"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m launch.pipeline",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--pipeline", required=True, choices=tuple(PIPELINES))
    add("--config", default="configs/quickstart.py", help="the recipe of all stages")
    add("--output", help="folder; by default runs/pipelines/PIPELINE")
    add("--n", type=int, default=8, help="completions per problem, for rows to imitate")
    add("--preference", default="", help="as 0.5*judge:rubric; by default left out")
    add("--dry-run", action="store_true", help="print the commands of all stages")
    return parser


if __name__ == "__main__":
    sys.exit(main())
