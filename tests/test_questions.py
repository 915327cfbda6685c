"""Quizzes, exam questions and flashcards on RLVR, answered by the code.

Each entry is a question, the answer that a reader is to give, and a function that
computes it. The questions are those of a course chapter; the answers it states are the
expected values.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import dapo_qwen32b
from rlvr_jax.analysis import claims, comparison, plateau
from rlvr_jax.analysis.entropy_law import fit_entropy_law
from rlvr_jax.core import kl, losses, passk, ratios
from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.aggregation import token_weights
from rlvr_jax.core.entropy import predicted_entropy_change
from rlvr_jax.core.paired import label, transition_matrix
from rlvr_jax.core.selection import token_covariance
from rlvr_jax.rollout.control import Control, Steer
from rlvr_jax.toys import shared, staleness
from rlvr_jax.verifiers import math as math_verifier
from rlvr_jax.verifiers import weak
from rlvr_jax.verifiers.audit import last_step_below
from rlvr_jax.verifiers.base import Sample, Status, apply
from tests.core.test_kl import FORWARD, REVERSE, estimates, expected_gradient
from tests.toys.test_choosing import HARD, HONEST, curves

QUESTIONS = {}


def asked(kind, question, expected):
    """Enters the decorated function as the answer to a question."""

    def enter(compute):
        assert question not in QUESTIONS
        QUESTIONS[question] = (kind, compute, expected)
        return compute

    return enter


def advantages(right, size, **options):
    """Of a group with so many right: those of one right and of one wrong answer."""
    rewards = jnp.arange(size) < right
    found = group_advantages(rewards, jnp.zeros(size, int), epsilon=0.0, **options)
    return np.asarray(found)[[0, -1]]


def weights(lengths, mode, *, divided=True):
    """Weight of one token of each answer; without the division, before the batch's."""
    mask = (jnp.arange(max(lengths)) < jnp.array(lengths)[:, None]) * 1.0
    found, denominator = token_weights(
        mask,
        jnp.zeros(len(lengths), int),
        loss_aggregation=mode,
        constant_length=2000,
    )
    return np.asarray(found / denominator if divided else found)[:, 0]


def clip_gradient(ratio, advantage=1.0, epsilon_low=0.2, epsilon_high=0.2):
    """Of the objective in the ratio."""

    def objective(r):
        return -losses.clipped_loss(
            jnp.log(r)[None, None],
            jnp.array([advantage]),
            epsilon_low=epsilon_low,
            epsilon_high=epsilon_high,
        ).sum()

    return float(jax.grad(objective)(jnp.array(ratio)))


# Quizzes


@asked(
    "quiz", "Any box counts: accuracy 40 -> 70 %, strict held-out flat. Why?", (1, 0)
)
def hedging():
    """The hedge is paid by the lenient checker and not by the strict one."""
    hedge = Sample("", r"It is \boxed{3}, or \boxed{4}, or \boxed{5}", "4")
    accepted = (weak.any_boxed(hedge), apply(math_verifier.verify, hedge))
    return tuple(int(v.status is Status.CORRECT) for v in accepted)


@asked("quiz", "All 16 samples are right, beta = 0: what does the prompt add?", 0.0)
def nothing():
    every = group_advantages(jnp.ones(16), jnp.zeros(16, int))
    loss = lambda d: losses.clipped_loss(d, every, epsilon_low=0.2, epsilon_high=0.2)
    return float(jnp.abs(jax.grad(lambda d: loss(d).sum())(jnp.zeros((16, 3)))).max())


@asked("quiz", "Sequence mean: a wrong answer from 500 to 2000 tokens", (4.0, 1.0, 4.0))
def penalty():
    """Per token 4 times less, in total the same; the token mean's total is 4 times."""
    short, long = (weights([100, n], "sequence_mean")[1] for n in (500, 2000))
    flat = [weights([100, n], "token_mean", divided=False)[1] * n for n in (500, 2000)]
    return short / long, (2000 * long) / (500 * short), flat[1] / flat[0]


@asked("quiz", "Why did DAPO raise epsilon_high alone?", (1, 0, 1, 0, 1))
def upper_bound():
    """.9 never meets the bound (1/.9 < 1.2), .01 does at .012; .28 lets it go on. A
    lower floor would let bad luck push a token further down."""
    may_move = [
        clip_gradient(1 / 0.9),
        clip_gradient(0.0121 / 0.01),
        clip_gradient(0.0121 / 0.01, epsilon_high=0.28),
        clip_gradient(0.7, -1.0),
        clip_gradient(0.7, -1.0, epsilon_low=0.4),
    ]
    return tuple(int(g != 0) for g in may_move)


@asked(
    "quiz",
    "pass@1 .30 -> .45, pass@256 .80 -> .65: what happened?",
    "sharpening + coverage loss",
)
def sharpening():
    """160 of 200 problems at 96/256 before, 130 at 177/256 after."""
    before = np.array([96] * 160 + [0] * 40)
    after = np.array([177] * 130 + [0] * 70)
    curve = lambda c: passk.pass_curve(256, c).mean(0)[[0, -1]]
    np.testing.assert_allclose(curve(before), [0.30, 0.80], atol=1e-9)
    np.testing.assert_allclose(curve(after), [0.45, 0.65], atol=1e-3)
    change = curve(after) - curve(before)
    return comparison.finding(*(label(x - 0.01, x + 0.01) for x in change))


@asked("quiz", "Best-of-n rises to n = 64 and falls by 1024. Why?", (True, True, False))
def fooled():
    """It rises, it falls, and without samples that fool the verifier it does not."""
    best, honest = curves(HARD).best, curves(HONEST).best
    return best[63] > best[0], best[1023] < best[63], honest[1023] < honest[63]


# Exam


@asked(
    "exam", "Is the centred advantage unbiased? What does the std do?", (7 / 8, 10 / 3)
)
def centring():
    """(G - 1) / G times RLOO; by std, right less wrong is 1/sqrt(p (1-p)) at p = .1."""
    centred = advantages(3, 8, scale="none")
    rloo = advantages(3, 8, scale="none", baseline="leave_one_out")
    right, wrong = advantages(100, 1000)
    return centred[0] / rloo[0], right - wrong


@asked("exam", "What do the fixes of the length bias cost?", (True, True, 2.0))
def fixes():
    """Token mean: a token's weight depends on the batch. Constant: it does not, and the
    whole step grows with the answers."""
    batches = [300, 500], [600, 1000]
    token = [weights(b, "token_mean")[0] for b in batches]
    constant = [weights(b, "constant")[0] for b in batches]
    steps = [w * sum(b) for w, b in zip(constant, batches, strict=True)]
    return token[0] != token[1], constant[0] == constant[1], steps[1] / steps[0]


@asked("exam", "What does k3 in the loss optimise?", [*FORWARD, *REVERSE, *REVERSE])
def k3():
    """The forward KL; k2 and the importance-corrected k3 the reverse one."""

    def corrected(logs):
        drift = (logs - jax.lax.stop_gradient(logs))[None]
        return kl.importance_corrected_kl(estimates(logs, estimator="k3")[None], drift)[
            0
        ]

    kinds = (
        lambda logs: estimates(logs, estimator="k3"),
        lambda logs: estimates(logs, estimator="k2"),
        corrected,
    )
    return np.concatenate([expected_gradient(kind) for kind in kinds])


@asked("exam", "Why does entropy fall, and what stops it?", (-1, 1, 0))
def falling():
    """Confident and right lowers it, unlikely and right raises it; Clip-Cov takes out
    the token of highest covariance, which is the confident right one."""
    policy = jnp.log(jnp.array([0.7, 0.2, 0.1]))
    change = [
        float(predicted_entropy_change(policy, jnp.eye(3)[winner])) for winner in (0, 2)
    ]
    covariance = token_covariance(
        policy[:, None], jnp.array([1.0, -0.5, -0.5]), jnp.ones((3, 1))
    )
    return *(int(np.sign(c)) for c in change), int(covariance[:, 0].argmax())


@asked(
    "exam",
    "Random rewards gain 21 points: hypotheses, and what separates them?",
    ["clip bias", "contamination", "latent mode"],
)
def spurious():
    """Five hypotheses; the gain goes with the clip, on fresh problems and in other
    families, code reasoning rises, a format reward alone does not explain it."""
    assert len(claims.HYPOTHESES) == 5
    observed = {
        "gain": 0.214,
        "clip_off": 0.0,
        "fresh": 0.0,
        "other_family": 0.0,
        "code_share": 0.25,
        "format": 0.05,
        "given_answer": 0.2,
    }
    found = claims.separate_causes(observed)
    return sorted(name for name, verdict in found.items() if verdict == "supported")


@asked("exam", "How would you test that RLVR expands the boundary?", (0.00146, 2))
def expansion():
    """2048 samples without a success bound p by .00146; count problems that go from
    none to solved."""
    before, after = np.array([0, 0, 0, 0.3]), np.array([0.9, 0.8, 0, 0.2])
    opened = transition_matrix(before, after)[0, 3]
    return round(passk.detectable_rate(2048), 5), int(opened)


@asked("exam", "Why a ratio per sequence, and why for MoE?", (math.e, math.exp(0.01)))
def sequence_ratio():
    """One of 100 tokens is routed anew: its ratio is e, the sequence's e^(1/100)."""
    drift, mask = jnp.zeros((1, 100)).at[0, 3].set(1.0), jnp.ones((1, 100))
    sequence = ratios.sequence_log_ratio(drift, mask)
    return float(jnp.exp(drift).max()), float(jnp.exp(sequence).max())


@asked("exam", 'A rare "Wait" at ratio 1.5: its gradient by PPO and CISPO', (0.0, 1.28))
def wait():
    ppo, _, cispo, _ = staleness.METHODS
    at = jnp.log(jnp.array([1.5]))
    return float(staleness.pull(ppo, at)[0]), float(staleness.pull(cispo, at)[0])


@asked(
    "exam",
    "Reward is flat, entropy near 0: what do you look at, in order?",
    [
        "groups without signal",
        "pass rates",
        "clipping by probability",
        "truncation and length",
        "entropy and covariance",
        "sampler against trainer",
        "verifier",
        "KL to the reference",
    ],
)
def plateaus():
    return list(plateau._POINTS)


@asked("exam", "When distil instead of RL on a small model?", (25.6, 0.1004, 0.0, 1.0))
def distil():
    """SFT-16: AIME points and GPU hours as published; and a strategy that
    the student does not have: no gradient by reward, one by imitation."""
    student, teacher = jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0])
    by_reward = shared.expected_reward_gradient(student, jnp.array([0.1, 1.0]))
    by_imitation = shared.imitation_gradient(student, teacher)
    points, share = round(72.6 - 47.0, 1), round(1800 / 17920, 4)
    return points, share, float(by_reward[1]), float(by_imitation[1])


@asked("exam", "Vote, best-of-n, weighted: when does each win?", (True, True, True))
def choosing_rules():
    """Hard problems at n = 64: the judge beats the vote; with exploits the weighted
    vote beats the judge; where a misconception leads, more votes are worse."""
    hard, honest = curves(HARD), curves(HONEST)
    return (
        honest.best[63] > honest.vote[63] + 0.5,
        hard.weighted[1023] > hard.best[1023] + 0.5,
        hard.vote[0] > hard.vote[63] + 0.1,
    )


@asked("exam", "Weak tests were gamed: harden, and what of trained runs?", (0.684, 20))
def hardening():
    """A special case wrong on 1/4 of inputs is found by 4 drawn ones with .684; train
    on from the last checkpoint whose hack rate is low."""
    found = passk.expected_pass_at_k([0.25], 4)[0]
    history = [(10, 0.0), (20, 0.01), (30, 0.2), (40, 0.6)]
    return round(float(found), 3), last_step_below(history, 0.05)


@asked("exam", "Why can random rewards change a clipped policy?", (0.0, -0.5))
def random_rewards():
    """Over the coin, a ratio of 1/.9 has no gradient, one beyond 1.2 has -1/2."""
    over_the_coin = lambda r: (clip_gradient(r, 1.0) + clip_gradient(r, -1.0)) / 2
    return over_the_coin(1 / 0.9), over_the_coin(1.5)


# Flashcards


@asked("card", "GRPO advantage", (math.sqrt(7), -1 / math.sqrt(7)))
def card_advantage():
    return tuple(advantages(1, 8))


@asked("card", "Centring and RLOO", 15 / 16)
def card_centring():
    rloo = advantages(5, 16, scale="none", baseline="leave_one_out")
    return advantages(5, 16, scale="none")[1] / rloo[1]


@asked("card", "Length bias", (7.0, 1.0))
def card_length():
    short, long = weights([200, 1400], "sequence_mean")
    return short / long, 200 * short / (1400 * long)


@asked("card", "Difficulty bias", 4 / math.sqrt(7))
def card_difficulty():
    """Std over no std at 1 of 8, against 4 of 8: 1.512."""
    factor = [advantages(k, 8)[0] / advantages(k, 8, scale="none")[0] for k in (1, 4)]
    return factor[0] / factor[1]


@asked("card", "DAPO's four", (0.2, 0.28, "dynamic", "token_mean", True, True, 0.0))
def card_dapo():
    config = dapo_qwen32b.get_config()
    o = config.objective
    return (
        o.epsilon_low,
        o.epsilon_high,
        config.curriculum.filter,
        o.loss_aggregation,
        o.overlong_buffer_tokens == 4096,
        o.overlong_filter,
        o.beta,
    )


@asked("card", "GSPO ratio", math.exp(0.2))
def card_gspo():
    """Geometric mean of 1, e^.2, e^.4."""
    mean = ratios.sequence_log_ratio(jnp.array([[0.0, 0.2, 0.4]]), jnp.ones((1, 3)))
    return float(jnp.exp(mean)[0, 0])


@asked("card", "CISPO", (1.28, 1.28, 0.3))
def card_cispo():
    cispo = list(staleness.METHODS)[2]
    at = lambda r, sign: float(staleness.pull(cispo, jnp.log(jnp.array([r])), sign)[0])
    return at(9.0, 1.0), at(9.0, -1.0), at(0.3, 1.0)


@asked("card", "Entropy dynamics", (-0.25998, -0.09572))
def card_entropy():
    """z = (1, .2, -.5, .1), A = (1, -.5, .3, -.2): natural and vanilla gradient."""
    logs = jax.nn.log_softmax(jnp.array([1.0, 0.2, -0.5, 0.1]))
    advantage = jnp.array([1.0, -0.5, 0.3, -0.2])
    policy = jnp.exp(logs)
    vanilla = policy * (advantage - policy @ advantage)
    changes = (predicted_entropy_change(logs, dz) for dz in (advantage, vanilla))
    return tuple(map(float, changes))


@asked("card", "Entropy-performance law", 0.55)
def card_law():
    """R = -.1 e^H + .65: the ceiling is b - a."""
    entropy = np.linspace(1.5, 0.2, 30)
    return fit_entropy_law(entropy, 0.65 - 0.1 * np.exp(entropy)).ceiling


@asked("card", "pass@1 and pass@infinity", (0.25, 0.75))
def card_limits():
    rates = [0.0, 0.1, 0.3, 0.6]
    return tuple(passk.expected_pass_at_k(rates, k).mean() for k in (1, 10**6))


@asked("card", "k3 in the loss", FORWARD)
def card_k3():
    return expected_gradient(lambda logs: estimates(logs, estimator="k3"))


@asked("card", "Budget forcing", (Steer(2, force=(7,)), Steer(6, force=(9,))))
def card_budget():
    """Closed (9) after 2 of at least 5 thinking tokens: "Wait" (7) in its place. At the
    budget of 6: the end of thinking is written."""
    short = Control(close=(9,), least_thinking=5, wait=(7,))
    long = Control(close=(9,), budget=6)
    first = short.look([1, 2, 9], [False] * 3)
    return first, long.look([1, 2, 3, 4, 5, 6], [False] * 6)


@asked("card", "Why best-of-n declines", (True, True))
def card_decline():
    """It falls below one sample's accuracy, where the weighted vote is right."""
    hard = curves(HARD)
    return bool(hard.best[1023] < 0.3), bool(hard.weighted[1023] > 0.99)


@asked("card", "Spurious rewards", ["model_families", "spurious_baseline"])
def card_spurious():
    """What a gain on one family without a random arm lacks, on a fresh benchmark."""
    claim = {"model_families": ["qwen"], "uncontaminated_benchmark": ["fresh"]}
    return [said.partition(":")[0] for said in claims.missing_evidence(claim)]


@pytest.mark.parametrize("question", QUESTIONS)
def test_answer(question):
    """INT-Q: 6 quizzes, 13 exam questions. INT-F: 14 flashcards."""
    _, compute, expected = QUESTIONS[question]
    found = compute()
    if np.asarray(expected).dtype.kind in "fi":
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    else:
        assert found == expected


def test_none_is_missing():
    kinds = [kind for kind, _, _ in QUESTIONS.values()]
    assert [kinds.count(kind) for kind in ("quiz", "exam", "card")] == [6, 13, 14]
