"""Trains a reward model: completions of a model, verified, and a scalar head.

python -m launch.reward_model --checkpoint runs/start --output runs/reward_model
python -m launch.reward_model --checkpoint runs/start --output DIR --predict steps
python -m launch.evaluate --checkpoint runs/start --scorer runs/reward_model
python -m launch.train --config ... --config.objective=tulu3 \\
    --config.critic.path=runs/reward_model

A run folder brings its own training problems, prompts, verifier and limits. The result
is a directory that transformers' AutoModelForSequenceClassification loads too; its
score is in the unit of the reward (reward.correct, reward.wrong). With --predict steps
it is a process reward model: a line is a step, its label comes from completions that go
on after it, and the score after it is the logit of its being right.
"""

import argparse
import pathlib
import sys
from collections.abc import Sequence

import jax
import numpy as np
from flax import nnx

from rlvr_jax.config import Config
from rlvr_jax.data.tokenizer import stop_ids
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.models.lora import merged
from rlvr_jax.models.weights import save_decoder
from rlvr_jax.rollout.scoring import VerifierFailure
from rlvr_jax.train import loading, reward_model, step_labels
from rlvr_jax.train.evaluation import Evaluation
from rlvr_jax.train.model_counts import evaluation_of
from rlvr_jax.train.policy import architecture_of
from rlvr_jax.verifiers.pool import VerifierPool


def main(argv: Sequence[str] | None = None) -> None:
    """Samples, trains, says how well it predicts, saves.

    Args:
      argv: the arguments after the program's name; by default those of the process.
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.predict != "steps" and (
        arguments.labels or arguments.step_completions
    ):
        parser.error("--labels and --step_completions are of --predict steps")
    if arguments.step_completions is not None and arguments.step_completions < 1:
        parser.error("--step_completions: a step needs one at least")
    try:
        _run(arguments)
    except (OSError, ValueError, VerifierFailure) as error:
        sys.exit(f"launch.reward_model: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m launch.reward_model",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--checkpoint", required=True, help="run folder or model directory")
    add("--output", required=True, type=pathlib.Path, help="where the model goes")
    add("--data", help="a source as of data.train, in place of the run's")
    add("--prompts", type=int, default=512, help="problems; every tenth is held out")
    add("--n", type=int, default=8, help="completions per problem")
    add("--temperature", type=float, default=1.0)
    add(
        "--predict",
        choices=("end", "tokens", "steps"),
        default="end",
        help="the outcome from the whole completion, or after every token of it; or "
        "whether each line is right",
    )
    add(
        "--labels",
        choices=("hard", "soft"),
        help="of steps: any is right, or the share",
    )
    add("--step_completions", type=int, help="that label a step; 8 by default")
    add("--epochs", type=int, default=1)
    add("--batch_size", type=int, default=64, help="completions per update")
    add("--learning_rate", type=float, default=1e-5)
    add("--seed", type=int, help="of sampling and order; the run's by default")
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
    parts = reward_model.split_held_out(problems)
    if not all(parts):
        raise ValueError(
            f"{len(problems)} problems are too few: every tenth is held out. Give "
            "another --data, or raise --prompts."
        )
    mesh = make_mesh(config.mesh.shape)
    model = loading.load_model(config, target, mesh)
    with VerifierPool(config.reward.workers, config.reward.timeout_s) as pool:
        data, held_out = (
            _completions(
                evaluation_of(config, model, part, pool, mesh), model, config, arguments
            )
            for part in parts
        )
    print(f"{model.origin}: {len(data.rewards)} completions to learn from", flush=True)
    architecture = architecture_of(config.model, model.tokenizer.vocab_size)
    parameters, losses = reward_model.train_reward_model(
        model.graphdef,
        model.parameters,
        architecture.hidden_size,
        data,
        predict=arguments.predict,
        learning_rate=arguments.learning_rate,
        batch_size=arguments.batch_size,
        epochs=arguments.epochs,
        seed=config.seed,
    )
    kind = "cross-entropy" if arguments.predict == "steps" else "squared error"
    print(f"{len(losses)} updates, {kind} {losses[0]:.4f} -> {losses[-1]:.4f}")
    scored = (model.graphdef, parameters, held_out, arguments.batch_size)
    if held_out.step_labels is None:
        fit = reward_model.fit(reward_model.scores_of(*scored), held_out.rewards)
        _print_fit(fit, "completions", "reward")
    else:
        labelled = ~np.isnan(held_out.step_labels)
        scores = 1 / (1 + np.exp(-reward_model.place_scores(*scored)[labelled]))
        fit = reward_model.fit(scores, held_out.step_labels[labelled])
        _print_fit(fit, "steps", "label")
    if jax.process_index() == 0:
        model.tokenizer.save(arguments.output)
    decoder = nnx.merge(model.graphdef, parameters["decoder"])
    save_decoder(
        merged(decoder),
        arguments.output,
        source=config.model.path or None,
        score=parameters["value_head"],
    )
    print(f"reward model: {arguments.output}")


def _completions(
    evaluation: Evaluation,
    model: loading.Model,
    config: Config,
    arguments: argparse.Namespace,
) -> reward_model.Judged:
    """Verified completions; of --predict steps with labels of their steps."""
    data = reward_model.judged(evaluation, model.parameters)
    if arguments.predict != "steps":
        return data
    steps = step_labels.steps_of(
        data, model.tokenizer, stop_ids(model.tokenizer, config.rollout.stop)
    )
    return step_labels.with_step_labels(
        data,
        steps,
        evaluation,
        model.parameters,
        completions=arguments.step_completions or 8,
        kind=arguments.labels or "hard",
        right=config.reward.correct,
    )


def _print_fit(fit: reward_model.Fit, things: str, value: str) -> None:
    print(
        f"held out: {fit.completions} {things}, mean {value} {fit.reward_mean:.3f}; "
        f"squared error {fit.error:.4f}, of the mean alone {fit.error_of_mean:.4f}; "
        f"area under the ROC curve {fit.auc:.3f}"
    )
    print(f"{things:>11}  score  {value:>6}")
    for count, score, reward in fit.bins:
        print(f"{count:11d}  {score:5.2f}  {reward:6.2f}")


if __name__ == "__main__":
    main()
