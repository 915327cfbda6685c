"""Samples a model on problems and says what it can do; compares two on the same ones.

python -m launch.evaluate --checkpoint runs/quickstart
python -m launch.evaluate --checkpoint models/smollm2 --data packaged:gsm8k --n 8
python -m launch.evaluate --checkpoint runs/a --base models/b    perplexity as well
python -m launch.evaluate --checkpoint runs/a --scorer DIR     a reward model chooses
python -m launch.evaluate --counts a.jsonl             scores of recorded counts
python -m launch.evaluate --counts base.jsonl rl.jsonl     the second against the first
python -m launch.evaluate --spread raw.jsonl chat.jsonl    one model in several ways
python -m launch.evaluate --checkpoint models/m --thinking_budget 512
python -m launch.evaluate --scaling b256.jsonl b512.jsonl --between 256 512

Counts are a line per problem, {"id": ..., "n": completions, "c": correct}, and what
else is known; a sampled model's are written to --output. A run folder brings its own
problems, prompts, verifier and limits; the flags change them. Of other models the
defaults are those of a recipe.
"""

import argparse
import json
import pathlib
import sys
from collections.abc import Sequence

import rich.console
import rich.table

from launch.score_tables import print_comparison, print_scores
from launch.ways import scaling, spread
from rlvr_jax.analysis.comparison import compare, summary
from rlvr_jax.analysis.counts import ProblemCounts, read_counts, write_counts
from rlvr_jax.analysis.protocol import by_domain

_FLAGS = {
    "n": ("evaluation.num_generations", int, "completions per problem"),
    "temperature": ("evaluation.temperature", float, "0: the most likely token"),
    "top_p": ("evaluation.top_p", float, ""),
    "max_completion_tokens": ("rollout.max_completion_tokens", int, ""),
    "max_prompt_tokens": ("data.max_prompt_tokens", int, "longer ones are left out"),
    "template": ("data.template", str, "chat or raw"),
    "system_prompt": ("data.system_prompt", str, ""),
    "question_suffix": ("data.question_suffix", str, ""),
    "few_shot": ("data.few_shot", int, "solved examples before a raw question"),
    "task_options": ("data.task_options", str, "JSON, of task: sources"),
    "verifier": ("reward.verifier", str, "of problems that name none"),
    "workers": ("reward.workers", int, "verifier processes"),
    "timeout_s": ("reward.timeout_s", float, "per answer"),
    "batch": ("batch.prompts_per_step", int, "prompts sampled together"),
    "dtype": ("model.dtype", str, "float32 or bfloat16"),
    "seed": ("seed", int, ""),
    "thinking_budget": (
        "control.budget",
        int,
        "tokens after which thoughts are closed",
    ),
    "budget_text": ("control.budget_text", str, "written before they are"),
    "least_thinking": ("control.least_thinking", int, "shorter thoughts go on"),
    "wait": ("control.wait", str, "what makes them go on"),
    "max_waits": ("control.max_waits", int, "how often"),
    "think_end": ("control.think_end", str, "what closes thoughts"),
}
"""Flag -> the setting that it changes."""


def main(argv: Sequence[str] | None = None) -> None:
    """Evaluates, compares, prints.

    Args:
      argv: the arguments after the program's name; by default those of the process.
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    _check_used(parser, arguments)
    if arguments.spread or arguments.scaling:
        (spread if arguments.spread else scaling)(arguments)
        return
    given = len(arguments.counts) + bool(arguments.checkpoint)
    if not 1 <= given <= 2:
        parser.error(
            "give --checkpoint, or --counts with one or two files, or both for a "
            f"comparison; got {given} models"
        )
    try:
        files = [read_counts(path) for path in arguments.counts]
        if arguments.checkpoint:
            files.append(_sample(arguments))
        scores = [summary(problems) for problems in files]
        both = compare(files[0], files[1]) if len(files) == 2 else None
        if both and len({problem.domain for problem in files[0]}) > 1:
            both["domains"] = by_domain(files[0], files[1])
    except (OSError, ValueError, RuntimeError) as error:
        sys.exit(f"launch.evaluate: {error}")
    if arguments.json:
        result = {"models": scores} | ({"comparison": both} if both else {})
        print(json.dumps(result, allow_nan=False))
        return
    console = rich.console.Console()
    names = [*map(str, arguments.counts)]
    names += [arguments.checkpoint] if arguments.checkpoint else []
    for name, score in zip(names, scores, strict=True):
        print_scores(console, name, score)
    if both:
        print_comparison(console, both)


_RECORDED = {
    "--counts": "recorded counts: one file, or base and other model; with "
    "--checkpoint, the base that it is compared with",
    "--spread": "counts of one model, evaluated in several ways (templates, "
    "temperatures, verifiers): how much its scores hang on the way",
    "--scaling": "counts of one model at several thinking budgets: accuracy over "
    "thinking tokens, their mean slope (scaling) and the best (performance)",
}
"""Options that read files of counts."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m launch.evaluate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, text in _RECORDED.items():
        parser.add_argument(
            name, nargs="+", default=[], type=pathlib.Path, metavar="JSONL", help=text
        )
    parser.add_argument(
        "--between",
        nargs=2,
        type=int,
        metavar=("LEAST", "MOST"),
        help="with --scaling: the share of completions whose thinking tokens are "
        "within (control)",
    )
    parser.add_argument("--checkpoint", help="run folder, model directory or .gguf")
    parser.add_argument(
        "--data", default="", help="a source as of data.train, or several with commas"
    )
    parser.add_argument("--step", type=int, help="of a run's checkpoint; the newest")
    parser.add_argument("--prompts", type=int, default=0, help="only the first so many")
    parser.add_argument("--base", help="a model that scores the completions, too")
    parser.add_argument(
        "--scorer",
        help="a reward model (of launch.reward_model, say) whose scores choose the "
        "best of k and weigh votes",
    )
    parser.add_argument(
        "--steps",
        choices=("min", "product", "last", "mean"),
        help="the scorer is of steps (--predict steps): how theirs become one score",
    )
    parser.add_argument("--output", type=pathlib.Path, help="where the counts go")
    parser.add_argument(
        "--texts", action="store_true", help="write the completions down as well"
    )
    parser.add_argument("--json", action="store_true", help="one object, for tools")
    for flag, (_, kind, text) in _FLAGS.items():
        parser.add_argument(f"--{flag}", type=kind, help=text or None)
    return parser


def _check_used(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Ends with an error where an option would change nothing."""
    given = {n for n, v in vars(arguments).items() if v != parser.get_default(n)}
    if arguments.spread:
        way, used = "--spread", {"spread"}
    elif arguments.scaling:
        way, used = "--scaling", {"scaling", "between"}
    elif arguments.checkpoint:
        way, used = "--checkpoint", given - {"between"}
    else:
        way, used = "--counts alone", {"counts"}
    if arguments.steps and not arguments.scorer:
        parser.error("--steps: says how to use a --scorer, and there is none")
    idle = sorted(given - used - {"json"})
    if idle and (given & used):
        names = ", ".join(f"--{name}" for name in idle)
        parser.error(f"{names}: not used with {way}; leave out what is not meant")


def _sample(arguments: argparse.Namespace) -> list[ProblemCounts]:
    """Counts of the model behind --checkpoint; written to --output."""
    # Imported here: counts alone need no JAX.
    from rlvr_jax.mesh.mesh import make_mesh, rearranged
    from rlvr_jax.train import loading, model_counts, reranking
    from rlvr_jax.validate import validate
    from rlvr_jax.verifiers.pool import VerifierPool

    changes = {
        setting: getattr(arguments, flag)
        for flag, (setting, _, _) in _FLAGS.items()
        if getattr(arguments, flag) is not None
    }
    if any(setting.startswith("control.") for setting in changes):
        # The engine that can write into texts, less what a run set for the other.
        changes |= {
            "rollout.engine": "slots",
            "rollout.prompts_at_once": 0,
            "reward.execution": "pool",
        }
    target = pathlib.Path(arguments.checkpoint).expanduser()
    output = arguments.output or pathlib.Path(f"{target.name}-counts.jsonl")
    output.parent.mkdir(parents=True, exist_ok=True)  # before the work is done
    config = loading.settings_of(target, changes)
    validate(config)
    mesh = rearranged(make_mesh(config.mesh.shape), config.mesh.rollout_shape)
    problems = loading.problems_of(config, arguments.data)
    limit = arguments.prompts or (0 if arguments.data else config.evaluation.prompts)
    problems = problems[: limit or None]
    model = loading.load_model(config, target, mesh, arguments.step)
    base = None
    if arguments.base:
        where = pathlib.Path(arguments.base).expanduser()
        base = loading.load_model(loading.settings_of(where, {}), where, mesh)
    scorer = None
    if arguments.scorer:
        scorer = reranking.load_reranker(
            arguments.scorer, config, mesh, steps=arguments.steps or ""
        )
    print(
        f"{model.origin}: {len(problems)} problems x "
        f"{config.evaluation.num_generations} completions",
        file=sys.stderr,
    )
    with VerifierPool(config.reward.workers, config.reward.timeout_s) as pool:
        counts = model_counts.count(
            config,
            model,
            problems,
            pool,
            mesh,
            base=base,
            reranker=scorer,
            keep_texts=arguments.texts,
        )
    write_counts(output, counts)
    print(f"counts: {output}", file=sys.stderr)
    return counts


if __name__ == "__main__":
    main()
