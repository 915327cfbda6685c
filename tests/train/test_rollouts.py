"""Sampling and verifying in one program."""

import types

import jax
import numpy as np
import pytest

from rlvr_jax.config import Config, RewardConfig
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.rollout.scoring import AuditAlarm
from rlvr_jax.train import setup
from rlvr_jax.train.batches import PromptBatches
from rlvr_jax.train.rollouts import Roller
from tests import tiny


def test_what_ends_a_program_from_inside_comes_out_as_it_was():
    """An alarm is an alarm, with its words, and no error of the program around it."""

    def alarm(*_):
        raise AuditAlarm("the policy may be learning a hole")

    graphdef, weights = tiny.policy()
    mesh = make_mesh((1, 1, 1), jax.devices()[:1])
    parts = setup.Setup.__new__(setup.Setup)
    for name, value in {
        "config": Config(reward=RewardConfig(execution="callback")),
        "scorer": types.SimpleNamespace(judged=alarm),
        "train": types.SimpleNamespace(problems=[None] * 2),
        "batches": PromptBatches([[5], [6]], 2, 1, 0, 2, mesh),
        "sampler": types.SimpleNamespace(graphdef=graphdef, mesh=mesh),
    }.items():
        object.__setattr__(parts, name, value)
    roll = Roller(parts)
    with pytest.raises(AuditAlarm, match=r"^the policy may be learning a hole$"):
        roll(weights, np.array([0, 1]), 0, Sampling(2, 3, (1,)))
