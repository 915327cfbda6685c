"""A card game whose rule may change: what imitation and RL learn of it, part by part.

A card is seen as a noisy picture; its value follows from its rank by a rule that the
prompt states. Two ways lead to an answer:

    read      name the card, then give the value that the stated rule has for it
    recall    give a value straight from the picture; the rule is not looked at

Before that the answer has to be in the form that can be read at all. All of it is
learned: the form, the choice of the way, the naming (perception), the following of the
rule, the table of recalled values. RL hears whether the value was right; imitation sees
traces of one way or the other. Trained under one rule, judged under another.

Chu et al. (https://arxiv.org/abs/2501.17161) train with J = Q = K = 10 and test with
11, 12, 13. Here it is the other way round: under 10 no reward tells a J from a Q.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from rlvr_jax.core.advantages import group_advantages

RANKS, FEATURES, NOISE = 13, 16, 0.5
"""Ranks and values, numbered from 0; features of a picture; its noise per feature."""
READ, RECALL = 0, 1
TRAINED = jnp.arange(RANKS)
"""Value of each rank under the rule of training: its number."""
OTHER = jnp.minimum(TRAINED, 9)
"""Under the other rule J, Q and K count as 10."""
FACES = jnp.arange(10, RANKS)
"""Ranks that the rule matters for."""
GROUPS, GENERATIONS, RATE = 16, 8, 0.5
"""Cards and traces of each per step; step size of gradient descent."""


class Policy(NamedTuple):
    """Everything that is learned; logits."""

    form: Float[Array, ""]
    """Of an answer in the right form."""
    way: Float[Array, " 2"]
    name: Float[Array, "D R"]
    """Picture -> rank."""
    follow: Float[Array, ""]
    """Of the stated rule's value for the named rank, above all other values."""
    recall: Float[Array, "D R"]
    """Picture -> value."""


class Traces(NamedTuple):
    """What was written about N cards."""

    form: Int[Array, " N"]
    """1: in the right form. Nothing else counts where it is 0."""
    way: Int[Array, " N"]
    card: Int[Array, " N"]
    """Named on the way READ."""
    value: Int[Array, " N"]


def pictures(key: Key[Array, ""]) -> Float[Array, "R D"]:
    """What each rank looks like without noise, a new deck for each key (consumed)."""
    return jax.random.normal(key, (RANKS, FEATURES))


def base(
    deck: Float[Array, "R D"],
    *,
    reads: float = 0.9,
    form: float = 0.95,
    sight: float = 0.15,
    follow: float = 3.0,
) -> Policy:
    """A base that names cards and follows rules more or less, and recalls no value.

    Args:
      deck: of `pictures`.
      reads: chance of the way READ.
      form: of the right form.
      sight: how sharply it names what it sees.
      follow: logit of the rule's value above all others.
    """
    return Policy(
        form=jnp.log(form / (1 - form)),
        way=jnp.log(jnp.array([reads, 1 - reads])),
        name=sight * deck.T,
        follow=jnp.array(follow),
        recall=jnp.zeros((FEATURES, RANKS)),
    )


def look(
    key: Key[Array, ""], deck: Float[Array, "R D"], ranks: Int[Array, " N"]
) -> Float[Array, "N D"]:
    """Noisy pictures of some cards (key consumed)."""
    return deck[ranks] + NOISE * jax.random.normal(key, (len(ranks), FEATURES))


def accuracy(
    policy: Policy,
    seen: Float[Array, "N D"],
    ranks: Int[Array, " N"],
    rule: Int[Array, " R"],
) -> Float[Array, ""]:
    """Chance of the right value over these pictures, exact."""
    right = rule[ranks]
    named = jax.nn.softmax(seen @ policy.name)
    given = jax.nn.softmax(policy.follow * jax.nn.one_hot(rule, RANKS))
    by_reading = jnp.take_along_axis(named @ given, right[:, None], axis=1)[:, 0]
    recalled = jax.nn.softmax(seen @ policy.recall)
    by_recall = jnp.take_along_axis(recalled, right[:, None], axis=1)[:, 0]
    way = jax.nn.softmax(policy.way)
    either = way[READ] * by_reading + way[RECALL] * by_recall
    return jax.nn.sigmoid(policy.form) * either.mean()


def recognition(
    policy: Policy, seen: Float[Array, "N D"], ranks: Int[Array, " N"]
) -> Float[Array, ""]:
    """Chance to name the card, whatever is then made of it: perception by itself."""
    named = jax.nn.softmax(seen @ policy.name)
    return jnp.take_along_axis(named, ranks[:, None], axis=1).mean()


def logprob(
    policy: Policy,
    seen: Float[Array, "N D"],
    traces: Traces,
    rule: Int[Array, " R"],
) -> Float[Array, " N"]:
    """Log-prob of each trace: form, then the way, then what that way writes."""

    def of(logits, chosen):
        logprobs = jax.nn.log_softmax(logits)
        return jnp.take_along_axis(logprobs, chosen[:, None], axis=1)[:, 0]

    form = jax.nn.log_sigmoid(jnp.where(traces.form == 1, policy.form, -policy.form))
    way = jax.nn.log_softmax(policy.way)[traces.way]
    stated = policy.follow * jax.nn.one_hot(rule[traces.card], RANKS)
    read = of(seen @ policy.name, traces.card) + of(stated, traces.value)
    recalled = of(seen @ policy.recall, traces.value)
    rest = way + jnp.where(traces.way == READ, read, recalled)
    return form + jnp.where(traces.form == 1, rest, 0.0)


def write(
    key: Key[Array, ""],
    policy: Policy,
    seen: Float[Array, "N D"],
    rule: Int[Array, " R"],
) -> Traces:
    """One trace of the policy for each picture (key consumed)."""
    form, way, card, value = jax.random.split(key, 4)
    count = (len(seen),)
    ways = jax.random.categorical(way, policy.way, shape=count)
    cards = jax.random.categorical(card, seen @ policy.name)
    stated = policy.follow * jax.nn.one_hot(rule[cards], RANKS)
    values = jnp.where((ways == READ)[:, None], stated, seen @ policy.recall)
    formed = jax.random.bernoulli(form, jax.nn.sigmoid(policy.form), count)
    values = jax.random.categorical(value, values)
    return Traces(formed.astype(jnp.int32), ways, cards, values)


def shown(
    key: Key[Array, ""],
    ranks: Int[Array, " N"],
    *,
    long: bool | Bool[Array, ""],
    noise: float | Float[Array, ""],
) -> Traces:
    """Traces to imitate, of training's rule.

    Args:
      key: consumed.
      ranks: the cards.
      long: name the card and follow the rule (READ); else the value alone (RECALL).
      noise: share of the traces whose value, and card, is any.
    """
    spoiled, card, value = jax.random.split(key, 3)
    wrong = jax.random.bernoulli(spoiled, noise, ranks.shape)
    any_of = lambda key: jax.random.randint(key, ranks.shape, 0, RANKS)
    return Traces(
        form=jnp.ones_like(ranks),
        way=jnp.full_like(ranks, jnp.where(long, READ, RECALL)),
        card=jnp.where(wrong, any_of(card), ranks),
        value=jnp.where(wrong, any_of(value), TRAINED[ranks]),
    )


@functools.partial(jax.jit, static_argnames="steps")
def imitated(
    keys: Key[Array, " seeds"],
    decks: Float[Array, "seeds R D"],
    starts: Policy,
    *,
    steps: int,
    long: bool | Bool[Array, ""],
    noise: float | Float[Array, ""] = 0.0,
) -> Policy:
    """Supervised tuning: the policy after every step, [seeds, steps, ...].

    Each step sees as many traces as one of `reinforced` writes.

    Args:
      keys: consumed, one per deck.
      decks: of `pictures`.
      starts: policies, stacked.
      steps: of gradient descent.
      long: as in `shown`.
      noise: as in `shown`.
    """

    def loss(policy, key, deck):
        cards, view, traces = jax.random.split(key, 3)
        ranks = jax.random.randint(cards, (GROUPS * GENERATIONS,), 0, RANKS)
        seen = look(view, deck, ranks)
        written = shown(traces, ranks, long=long, noise=noise)
        return -logprob(policy, seen, written, TRAINED).mean()

    return _trained(loss, keys, decks, starts, steps)


@functools.partial(jax.jit, static_argnames="steps")
def reinforced(
    keys: Key[Array, " seeds"],
    decks: Float[Array, "seeds R D"],
    starts: Policy,
    *,
    steps: int,
) -> Policy:
    """RL by the group's mean on right values: the policy after every step.

    Args:
      keys: as in `imitated`.
      decks: see there.
      starts: see there.
      steps: see there.
    """

    def loss(policy, key, deck):
        cards, view, draw = jax.random.split(key, 3)
        groups = jnp.repeat(jnp.arange(GROUPS), GENERATIONS)
        ranks = jax.random.randint(cards, (GROUPS,), 0, RANKS)[groups]
        seen = look(view, deck, ranks)
        written = write(draw, policy, seen, TRAINED)
        right = (written.form == 1) & (written.value == TRAINED[ranks])
        paid = group_advantages(right, groups)
        return -(paid * logprob(policy, seen, written, TRAINED)).mean()

    return _trained(loss, keys, decks, starts, steps)


def _trained(loss, keys, decks, starts: Policy, steps: int) -> Policy:
    def run(key, deck, start):
        def step(policy, key):
            gradient = jax.grad(loss)(policy, key, deck)
            new = jax.tree.map(lambda p, g: p - RATE * g, policy, gradient)
            return new, new

        return jax.lax.scan(step, start, jax.random.split(key, steps))[1]

    return jax.vmap(run)(keys, decks, starts)
