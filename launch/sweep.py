"""Runs a table of settings x seeds, each cell in a process of its own.

python -m launch.sweep --config configs/sweeps/dapo_ablation.py
python -m launch.sweep --config configs/quickstart.py --seeds 0,1,2 \\
    --grid config.objective.epsilon_high=0.2,0.28 --grid config.rollout.top_p=0.9,1.0

Finished cells are skipped and unfinished ones continue, so that the same command goes
on after a stop. Flags of launch.train (--config.steps=20) hold for all cells. A cell
that fails stops no other. `python -m launch.report FOLDER` prints the table.
"""

import argparse
import dataclasses
import importlib.util
import json
import os
import pathlib
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from launch import cells, flags
from rlvr_jax import sweeps
from rlvr_jax.config import Config
from rlvr_jax.sweeps import Row, Sweep


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what is left of a sweep.

    Args:
      argv: the arguments after the program's name; by default those of the process.

    Returns:
      0 when every cell finished, 1 otherwise.
    """
    arguments, rest = _parser().parse_known_args(argv)
    try:
        common = settings_of(rest)
        recipe, base, sweep = _read(arguments)
        folder = pathlib.Path(
            arguments.output or f"runs/sweeps/{_stem(arguments.config)}"
        )
        plan = sweeps.plan(sweep, base, folder, common)
        described = sweeps.description(sweep, recipe, plan)
        if not arguments.dry_run:
            sweeps.check_unchanged(folder, described)
    except (OSError, ValueError) as error:
        print(f"error: launch.sweep: {error}", file=sys.stderr)
        return 2
    if arguments.dry_run:
        for cell in [*plan.starts.values(), *plan.cells]:
            print(shlex.join(cells.command(recipe, cell)[1:]))
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sweep.json").write_text(json.dumps(described, indent=2) + "\n")
    processes = arguments.processes or max(1, (os.cpu_count() or 1) // 2)
    print(
        f"{len(sweep.rows)} rows x {len(sweep.seeds)} seeds, {len(plan.starts)} cold "
        f"starts, {processes} at a time, in {folder}",
        flush=True,
    )
    failed = cells.run_all(recipe, plan, processes)
    print(f"table: python -m launch.report {folder}")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m launch.sweep",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--config",
        required=True,
        help="a file with get_sweep(config) and get_config(), or any recipe",
    )
    parser.add_argument("--base", help="a recipe to run the file's rows on instead")
    parser.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="NAME=V1,V2",
        help="a setting and its values; several are combined with one another and "
        "with the file's rows",
    )
    parser.add_argument(
        "--one-axis",
        action="store_true",
        help="change one setting of the grids at a time, beside the base",
    )
    parser.add_argument("--seeds", help="as 0,1,2; by default the file's, or 0")
    parser.add_argument(
        "--rows", help="names of rows, or parts of them, with commas between"
    )
    parser.add_argument("--output", help="folder; by default runs/sweeps/FILE")
    parser.add_argument(
        "--processes",
        type=int,
        default=0,
        help="at a time; by default cores / 2; 1 if cells share an accelerator",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the commands of all cells"
    )
    return parser


def _read(arguments: argparse.Namespace) -> tuple[str, Config, Sweep]:
    """The recipe's path, its settings and the sweep, as the arguments change it."""
    module = load_recipe(arguments.config)
    recipe = arguments.base or arguments.config
    base = (load_recipe(recipe) if arguments.base else module).get_config()
    if not isinstance(base, Config):
        raise ValueError(f"get_config() of {recipe} must return a Config")
    if hasattr(module, "get_sweep"):
        sweep = module.get_sweep(base)
        if sweep.steps_to and sweep.steps_to not in [row.name for row in sweep.rows]:
            raise ValueError(f"steps_to={sweep.steps_to!r} is none of the file's rows")
    else:
        sweep = Sweep(rows=[Row("base" if not arguments.grid else "")])
    axes = {}
    for text in arguments.grid:
        name, values = _axis(text)
        axes[name] = values
    if arguments.one_axis:
        if not axes:
            raise ValueError("--one-axis needs the settings to vary: --grid NAME=A,B")
        if hasattr(module, "get_sweep"):
            raise ValueError(
                f"--one-axis leaves no room for the rows of {arguments.config}: give a "
                "recipe without get_sweep, or --grid alone, which crosses them"
            )
        sweep = dataclasses.replace(sweep, rows=sweeps.one_axis_rows(axes))
    elif axes:
        sweep = dataclasses.replace(sweep, rows=sweeps.crossed(sweep.rows, axes))
    if arguments.seeds:
        seeds = [int(seed) for seed in arguments.seeds.split(",")]
        sweep = dataclasses.replace(sweep, seeds=seeds)
    if arguments.rows:
        rows = _chosen(sweep.rows, arguments.rows)
        sweep = dataclasses.replace(sweep, rows=rows)
    for row in sweep.rows:
        _check_names(row.settings)
    return recipe, base, sweep


def _chosen(rows: Sequence[Row], wanted: str) -> list[Row]:
    """The rows of those names; a name that no row has stands for all that hold it."""
    names = [row.name for row in rows]
    found = []
    for part in (part.strip() for part in wanted.split(",")):
        fitting = [part] if part in names else [n for n in names if part in n]
        if not fitting:
            raise ValueError(f"--rows: {part!r} fits none of {', '.join(names)}")
        found += fitting
    return [row for row in rows if row.name in found]


def load_recipe(path: str) -> Any:
    """The module of a recipe or sweep file."""
    file = pathlib.Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {path} (--config, --base)")
    spec = importlib.util.spec_from_file_location(f"sweep_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, "get_config"):
        raise ValueError(f"{path} has no get_config()")
    return module


def settings_of(rest: Sequence[str]) -> dict[str, str]:
    """`--config.NAME=VALUE` flags as settings.

    Raises:
      ValueError: another argument, or an unknown setting.
    """
    found = {}
    for argument in rest:
        name, equals, value = argument.removeprefix("--config.").partition("=")
        if not argument.startswith("--config.") or not equals:
            raise ValueError(
                f"unexpected argument {argument!r}; settings of all cells are written "
                "--config.NAME=VALUE"
            )
        found[name] = value
    _check_names(found)
    return found


def _axis(text: str) -> tuple[str, list[str]]:
    """A grid's name and values; commas inside brackets and quotes belong to a value.

    Example:
      >>> _axis("config.mesh.shape=(1,2,1),(2,1,1)")
      ('mesh.shape', ['(1,2,1)', '(2,1,1)'])
    """
    name, equals, values = text.removeprefix("--").partition("=")
    if not equals or not values:
        raise ValueError(f"--grid is written NAME=VALUE,VALUE, got {text!r}")
    found, depth = [""], 0
    for character in values:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return name.removeprefix("config."), found


def _check_names(settings: sweeps.Settings) -> None:
    known = flags.setting_names()
    for name in settings:
        if name not in known:
            guess = flags.suggestion(name, known)
            raise ValueError(f"unknown setting {name}{guess}")
        if name in ("seed", "run_dir"):
            raise ValueError(f"{name} is set per cell; use --seeds and --output")


def _stem(path: str) -> str:
    return pathlib.Path(path).stem


if __name__ == "__main__":
    sys.exit(main())
