"""A scorer in the loop against a verifier, over 64 seeds."""

import importlib
import pathlib
import re

import jax
import numpy as np
import pytest

from rlvr_jax.toys.hacked_scorer import RIGHT, SHARES, fitted, scores, train

SEEDS = 64
DOCS = pathlib.Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def runs():
    keys = jax.random.split(jax.random.key(0), SEEDS)
    ways = {
        "scorer": {},
        "verifier": {"paid_by": "verifier"},
        "refitted": {"refit_every": 25},
    }
    run = lambda settings: jax.vmap(lambda key: train(key, **settings))(keys)
    return {name: jax.tree.map(np.asarray, run(way)) for name, way in ways.items()}


def test_the_line_is_least_squares():
    """Against numpy's on the shares themselves: a step's chance of being right, over
    its words, weighted by how often it is written."""
    many = jax.vmap(lambda key: fitted(key, SHARES, 2000))(
        jax.random.split(jax.random.key(1), 256)
    )
    share = np.exp(np.asarray(SHARES))
    words = np.array([1.0, 0.0, 2.5])
    inputs = np.stack([np.ones(3), words], axis=1) * np.sqrt(share)[:, None]
    exact = np.linalg.lstsq(inputs, np.asarray(RIGHT) * np.sqrt(share), rcond=None)[0]
    np.testing.assert_allclose(np.mean(many, axis=0), exact, atol=0.01)


def test_the_scorer_ranks_what_it_was_fitted_on():
    """Careful above sloppy steps, which were 98 of 100; the third kind above both."""
    line = fitted(jax.random.key(2), SHARES, 2000)
    careful, sloppy, pleasing = scores(line)
    assert sloppy < careful < pleasing


def test_proxy_up_gold_down(runs):
    """PROC-12, REC-09: in every run the score ends at its highest, and the chance of a
    right step, which rose by more than .2 first, ends below where it began."""
    found = runs["scorer"]
    begin, end = found.gold[:, 0], found.gold[:, -1]
    assert (found.gold.max(axis=1) > begin + 0.2).all()
    assert (end < begin - 0.3).all()
    assert (found.proxy[:, -1] > found.proxy[:, 0] + 0.3).all()
    assert (found.proxy[:, -1] > found.proxy.max(axis=1) - 0.05).all()
    # Past the peak of gold, proxy goes on up.
    peaks = found.gold.argmax(axis=1)
    at_peak = np.take_along_axis(found.proxy, peaks[:, None], axis=1)[:, 0]
    assert (found.proxy[:, -1] > at_peak + 0.1).all()


def test_a_verifier_in_the_loop_is_not_found_out(runs):
    """PROC-12: paid for right solutions gold rises to what careful steps give, .95."""
    found = runs["verifier"]
    assert (found.gold[:, -1] > 0.94).all()
    assert (found.pleasing[:, -1] < 0.01).all()


def test_new_labels_all_along_keep_the_scorer_honest(runs):
    """PROC-14: at 32 times the labels gold stays up, yet below the verifier's."""
    found, verified = runs["refitted"], runs["verifier"]
    assert (found.gold[:, -1] > 0.85).all()
    assert (found.gold[:, -1] < verified.gold[:, -1]).all()


def test_each_reason_points_to_what_is_there():
    """PROC-14: the four of the checklist, and the functions that they name."""
    text = (DOCS / "process_rewards.md").read_text(encoding="utf8")
    rows = re.findall(r"^\| (\w+) +\|.*\| (`.*`) *\|$", text, re.MULTILINE)
    assert [name for name, _ in rows] == ["define", "label", "hack", "retrain"]
    for _, places in rows:
        for place in re.findall(r"`([\w.]+)`", places):
            module, _, name = place.rpartition(".")
            assert callable(
                getattr(importlib.import_module(f"rlvr_jax.{module}"), name)
            )
