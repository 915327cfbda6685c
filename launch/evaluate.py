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
from typing import Any

import rich.console
import rich.table

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
        _print_scores(console, name, score)
    if both:
        _print_comparison(console, both)


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


def _print_scores(
    console: rich.console.Console, name: str, score: dict[str, Any]
) -> None:
    n = score["n"]
    ks = sorted({2**i for i in range(n.bit_length()) if 2**i <= n} | {n})
    columns = {"pass@k": "pass@k", "maj@k": "maj@k", "best_of_k": "best of k"}
    heading = f"{name}: {score['problems']} problems, n = {n}"
    console.print(heading, highlight=False, soft_wrap=True, markup=False)
    table = rich.table.Table()
    table.add_column("k", justify="right")
    for key in columns:
        if key in score:
            table.add_column(columns[key], justify="right")
    for k in ks:
        table.add_row(
            str(k), *(_interval(score[key][k - 1]) for key in columns if key in score)
        )
    console.print(table)
    lines = [
        f"avg@{n} {_interval(score['avg@n'])}, "
        f"+-{100 * score['sampling_error']:.1f} by the draw of completions alone",
        f"coverage {_interval(score['coverage'])} have a correct completion; none "
        f"correct of {n} leaves a rate of {100 * score['unseen_rate']:.3g} % possible",
    ]
    if "scorer" in score:
        lines.append(_chosen(score))
    if "tokens" in score:
        cut = score.get("truncated_share")
        share = "" if cut is None else f", {100 * cut:.1f} % cut at the limit"
        lines.append(f"{score['tokens']:.0f} tokens a completion{share}")
    if "behaviours" in score:
        shares = (
            f"{n} {100 * b['share']:.0f} %" for n, b in score["behaviours"].items()
        )
        lines.append("by words: " + ", ".join(shares))
    if "perplexity_correct" in score:
        lines.append(
            f"perplexity of solutions under the base {score['perplexity_correct']:.2f}"
        )
    console.print("\n".join(lines), highlight=False, soft_wrap=True)


def _chosen(score: dict[str, Any]) -> str:
    """What a vote adds to one completion, and a scorer's choice to the vote."""
    n, one = score["n"], 100 * score["pass@k"][0][0]
    best = 100 * score["best_of_k"][n - 1][0]
    parts, before = [f"pass@1 {one:.1f}"], one
    if "maj@k" in score:
        before = 100 * score["maj@k"][n - 1][0]
        parts.append(f"a vote of {n} {before:.1f} ({before - one:+.1f})")
    parts.append(f"the scorer's choice of {n} {best:.1f} ({best - before:+.1f})")
    found = score["scorer"]
    if "weighted@n" in found:
        parts.append(f"a vote weighted by scores {100 * found['weighted@n'][0]:.1f}")
    if found["auc"] is not None:
        parts.append(f"area under the ROC curve {found['auc']:.3f}")
    return ", ".join(parts)


def _print_comparison(console: rich.console.Console, both: dict[str, Any]) -> None:
    console.print("second less first, with a band that holds at all k at once")
    table = rich.table.Table()
    for heading in ("k", "difference", "verdict"):
        table.add_column(heading, justify="right")
    last = both["k"]
    for k in sorted({2**i for i in range(last.bit_length()) if 2**i <= last} | {last}):
        mean, low, high = both["difference"][k - 1]
        table.add_row(
            str(k),
            f"{100 * mean:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]",
            both["verdicts"][k - 1],
        )
    console.print(table)
    lines = [f"finding: {both['finding']}"]
    if both["crosses"]:
        low, high = both["first_loss"]
        lines.append(f"the curves cross: the first loss is at k in [{low}, {high}]")
    solved = both["solved"]
    lines.append(
        f"solved by both {solved['preserved']}, gained {solved['gained']}, lost "
        f"{solved['lost']}, by neither {solved['neither']} (retention "
        f"{solved['retention']:.3f}, discovery {solved['discovery']:.3f}, net "
        f"{solved['net']:+.3f})"
    )
    lines.append(
        f"pass@{last} of the first less pass@1 of the second: "
        f"{100 * both['sampling_gap']:.1f} points"
    )
    for match in both.get("matched", [])[-1:]:
        mean, low, high = match["difference"]
        lines.append(
            f"at equal cost, pass@{match['other_k']} - pass@{match['base_k']}: "
            f"{100 * mean:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
        )
    if "new_solutions_perplexity" in both:
        lines.append(
            "perplexity of newly solved problems' solutions under the base "
            f"{both['new_solutions_perplexity']:.2f}"
        )
    console.print("\n".join(lines), highlight=False, soft_wrap=True)
    if "domains" in both:
        console.print(_domains(both["domains"]))
    levels = rich.table.Table("first \\ second")
    for name in both["levels"]:
        levels.add_column(name, justify="right")
    for name, row in zip(both["levels"], both["transitions"], strict=True):
        levels.add_row(name, *map(str, row))
    console.print(levels)


def _domains(rows: Sequence[dict[str, Any]]) -> rich.table.Table:
    table = rich.table.Table("domain", "problems", "k = 1", "last k", "finding")
    for row in rows:
        ends = (
            f"{100 * mean:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
            for mean, low, high in (row["first"], row["last"])
        )
        table.add_row(row["domain"], str(row["problems"]), *ends, row["finding"])
    return table


def _interval(score: Sequence[float]) -> str:
    mean, low, high = (100 * part for part in score)
    return f"{mean:.1f} [{low:.1f}, {high:.1f}]"


if __name__ == "__main__":
    main()
