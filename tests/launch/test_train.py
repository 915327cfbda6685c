"""Which errors of a run are one line, and which keep their traceback."""

import json

import pytest

from launch import train
from rlvr_jax.config import Config
from rlvr_jax.errors import UserError
from rlvr_jax.rollout.scoring import VerifierFailure
from rlvr_jax.train.lock import LockLost


@pytest.fixture
def ends_with(monkeypatch):
    """`train.main` with a run that is `body`."""
    monkeypatch.setattr(train, "give_virtual_devices_threads", lambda: None)
    monkeypatch.setattr(train, "start_processes", lambda _: None)
    monkeypatch.setattr(train, "use_compilation_cache", lambda: None)
    monkeypatch.setattr(train, "_DISTRIBUTED", type("Flag", (), {"value": "auto"}))

    def run(body):
        monkeypatch.setattr(train, "run_training", body)
        return train.main(Config())

    return run


@pytest.mark.parametrize("kind", [UserError, OSError, VerifierFailure, LockLost])
def test_what_is_said_to_the_user_is_one_line(ends_with, kind):
    def refuses(_):
        raise kind(
            "data.train: the file is not there",
        )

    with pytest.raises(UserError, match=r"^data\.train: the file is not there$"):
        ends_with(refuses)


def test_a_bug_keeps_its_traceback(ends_with):
    """A ValueError of Python or of a library says nothing about the settings.

    That of json comes from a line that begins with "raise", as ours do.
    """
    for body in (lambda _: int("seven"), lambda _: max([]), lambda _: json.loads("{")):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            ends_with(body)
        assert not isinstance(caught.value, UserError)
