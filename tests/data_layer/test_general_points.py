"""Four cards to 24, under two rules for the faces."""

import itertools
import json

from rlvr_jax.data import tasks
from rlvr_jax.data.tasks import countdown, general_points
from rlvr_jax.verifiers.base import Sample, Status
from rlvr_jax.verifiers.countdown import verify


def hands(faces="ten", split="train", **options):
    settings = {"count": 60, "evaluation_count": 30, "faces": faces} | options
    return tasks.generate("general_points", 0, split, options=json.dumps(settings))


def verdict(problem, completion):
    sample = Sample("countdown", completion, problem.answer, problem.question, {})
    return verify(sample).status


def test_every_hand_has_a_worked_solution_that_verifies():
    """DATA-20: the generator's own solution, judged by the verifier."""
    for faces in ("ten", "rank"):
        for problem in hands(faces):
            assert verdict(problem, problem.meta["solution"]) is Status.CORRECT
            assert problem.verifier == "countdown"
            assert general_points.RULES[faces] in problem.question
            assert problem.answer["target"] == 24


def test_the_solver_knows_which_hands_have_a_solution():
    """DATA-20: every seventh hand of three, against a search over all values that any
    order of operations reaches."""

    def reachable(numbers):
        if len(numbers) == 1:
            return {numbers[0]}
        found = set()
        for i, j in itertools.permutations(range(len(numbers)), 2):
            rest = [n for k, n in enumerate(numbers) if k not in (i, j)]
            a, b = numbers[i], numbers[j]
            values = {a + b, a - b, a * b} | ({a / b} if b else set())
            for value in values:
                found |= reachable([*rest, value])
        return found

    every = list(itertools.combinations_with_replacement(range(1, 14), 3))
    for ranks in every[::7]:
        ours = countdown.solve(ranks, 24) is not None
        brute = any(abs(v - 24) < 1e-9 for v in reachable(list(map(float, ranks))))
        assert ours == brute, ranks


def test_the_other_rule_flips_the_verdict_of_known_hands():
    """DATA-20: K, Q, 8, 2 make 24 by 10 + 10 + 8 / 2 where faces count as 10, and by
    (13 - 12 + 2) * 8 where they count as their ranks; not the other way around."""
    ranks = [13, 12, 8, 2]
    ten, rank = (general_points.values(ranks, faces) for faces in ("ten", "rank"))
    assert (ten, rank) == ([10, 10, 8, 2], [13, 12, 8, 2])
    by_ten, by_rank = "10 + 10 + 8 / 2", "(13 - 12 + 2) * 8"

    def judged(numbers, text):
        answer = {"target": 24, "numbers": numbers}
        return verify(Sample("countdown", text, answer, "", {})).status

    assert judged(ten, by_ten) is Status.CORRECT
    assert judged(rank, by_ten) is Status.WRONG
    assert judged(rank, by_rank) is Status.CORRECT
    assert judged(ten, by_rank) is Status.WRONG
    flipped = 0
    for problem in hands(only_faces=True):
        cards = problem.meta["cards"]
        names = {name: r for r, name in general_points.NAMES.items()}
        numbers = general_points.values([names.get(c) or int(c) for c in cards], "rank")
        expression = problem.meta["solution"].split("<answer>")[1].split("<")[0]
        flipped += judged(numbers, expression) is Status.WRONG
    assert flipped == 60  # each hand has a face, whose number changed


def test_hands_held_out_under_one_rule_are_held_out_under_the_other():
    """DATA-20: an evaluation with the other rule shows no hand of the training."""

    def of(problems):
        return {tuple(sorted(problem.meta["cards"])) for problem in problems}

    trained = of(hands("ten", count=300))
    assert not trained & of(hands("rank", "evaluation"))
    assert not trained & of(hands("ten", "evaluation"))
