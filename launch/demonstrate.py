"""Rejection sampling: what a model solves, verified, becomes rows to imitate.

python -m launch.demonstrate --checkpoint runs/teacher --output solved.jsonl
python -m launch.train --config ... --config.data.train=solved.jsonl \\
    --config.warmup.steps=200 --config.steps=0

A run folder brings its own training problems, prompts, verifier and limits. The student
may be any model, as `--config.model.path`; imitation is the run's cold start.
"""

import argparse
import json
import pathlib
import sys
from collections.abc import Sequence

import jax

from rlvr_jax.data.modes import in_both_modes
from rlvr_jax.mesh.mesh import make_mesh, rearranged
from rlvr_jax.rollout.scoring import VerifierFailure
from rlvr_jax.train import loading
from rlvr_jax.train.demonstrations import Rules, sample_demonstrations
from rlvr_jax.train.model_counts import evaluation_of
from rlvr_jax.verifiers.identify import LANGUAGES
from rlvr_jax.verifiers.pool import VerifierPool


def main(argv: Sequence[str] | None = None) -> None:
    """Samples, verifies, filters, writes.

    Args:
      argv: the arguments after the program's name; by default those of the process.
    """
    arguments = _parser().parse_args(argv)
    try:
        _run(arguments)
    except (OSError, ValueError, VerifierFailure) as error:
        sys.exit(f"launch.demonstrate: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m launch.demonstrate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--checkpoint", required=True, help="run folder or model directory")
    add("--output", required=True, type=pathlib.Path, help="a .jsonl file to write")
    add("--data", help="a source as of data.train, in place of the run's")
    add("--prompts", type=int, help="only the first so many problems")
    add("--n", type=int, default=8, help="completions per problem")
    add("--temperature", type=float, default=1.0)
    add("--per_problem", type=int, default=4, help="at most so many solutions of each")
    add("--shortest", action="store_true", help="the shortest correct ones first")
    add(
        "--language",
        default="",
        choices=("", *sorted(LANGUAGES)),
        help="leave out what mixes in others",
    )
    add("--max_paragraph_words", type=int, default=0, help="leave out longer ones")
    add("--no_code", action="store_true", help="leave out code blocks")
    add(
        "--drop_branching",
        type=float,
        default=0.0,
        help="share to leave out: those that most often start over",
    )
    add(
        "--modes",
        action="store_true",
        help="each question with /think, /no_think, both and neither, thoughts or not",
    )
    add("--seed", type=int, help="of sampling; the run's by default")
    return parser


def _run(arguments: argparse.Namespace) -> None:
    target = pathlib.Path(arguments.checkpoint).expanduser()
    config, problems = loading.training_problems(
        target,
        data=arguments.data,
        prompts=arguments.prompts,
        num_generations=arguments.n,
        temperature=arguments.temperature,
        seed=arguments.seed,
    )
    rules = Rules(
        per_problem=arguments.per_problem,
        shortest=arguments.shortest,
        language=arguments.language,
        max_paragraph_words=arguments.max_paragraph_words,
        code_blocks=not arguments.no_code,
        drop_branching=arguments.drop_branching,
    )
    arguments.output.parent.mkdir(parents=True, exist_ok=True)  # before the work
    mesh = rearranged(make_mesh(config.mesh.shape), config.mesh.rollout_shape)
    model = loading.load_model(config, target, mesh)
    with VerifierPool(config.reward.workers, config.reward.timeout_s) as pool:
        found = sample_demonstrations(
            evaluation_of(config, model, problems, pool, mesh),
            model.parameters,
            rules,
            template=config.data.template,
        )
    print(
        f"{model.origin}: {len(problems)} problems, {found.completions} completions, "
        f"{found.correct} correct; kept {found.kept} solutions of {len(found.rows)}"
    )
    if not found.rows:
        raise ValueError("nothing was kept; sample more, or ask for less")
    if jax.process_index() == 0:
        rows = found.rows
        if arguments.modes:
            rows = [one for row in rows for one in in_both_modes(row)]
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        arguments.output.write_text("".join(lines), encoding="utf-8")
    print(f"rows: {arguments.output}")


if __name__ == "__main__":
    main()
