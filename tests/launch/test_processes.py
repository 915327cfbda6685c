"""Which environments are those of one process of many, and what is refused."""

import jax
import pytest

from launch import processes
from rlvr_jax.validate import ConfigError


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"SLURM_STEP_NUM_TASKS": "1"}, False),
        ({"SLURM_STEP_NUM_TASKS": "8"}, True),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, True),
        ({"TPU_WORKER_HOSTNAMES": "localhost"}, False),
        ({"TPU_WORKER_HOSTNAMES": "a-0.a,a-1.a"}, True),
        ({"MEGASCALE_NUM_SLICES": "2"}, True),
    ],
)
def test_several(environment, expected):
    assert processes.several(environment) is expected


@pytest.fixture
def joined(monkeypatch):
    """Calls of jax.distributed.initialize."""
    calls = []
    monkeypatch.setattr(
        jax.distributed, "initialize", lambda *given: calls.append(given)
    )
    return calls


def test_our_own_variables(joined):
    given = dict(zip(processes.OWN, ("host:1", "2", "0"), strict=True))
    assert processes.start_processes("auto", given) == 0
    assert joined == [("host:1", 2, 0)]
    del given["RLVR_PROCESS_ID"]
    with pytest.raises(ConfigError, match="RLVR_PROCESS_ID must be set too"):
        processes.start_processes("auto", given)


def test_a_host_by_itself_joins_nothing(joined):
    processes.start_processes("auto", {})
    processes.start_processes("no", {"SLURM_STEP_NUM_TASKS": "8"})
    assert joined == []
    processes.start_processes("auto", {"SLURM_STEP_NUM_TASKS": "8"})
    processes.start_processes("yes", {})
    assert joined == [(), ()]


def test_no_cluster_is_an_error_that_says_what_to_set(monkeypatch):
    def initialize():
        raise ValueError("coordinator_address should be defined.")

    monkeypatch.setattr(jax.distributed, "initialize", initialize)
    with pytest.raises(ConfigError, match=r"RLVR_COORDINATOR.*--distributed=no"):
        processes.start_processes("yes", {})
