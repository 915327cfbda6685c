"""The first signal asks, the second acts, and afterwards all is as before."""

import signal

import pytest

from rlvr_jax.train.interrupts import stop_on_signals

BOTH = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def usual():
    """Handlers that count, in place of those of the test runner."""
    seen = []
    before = {number: signal.getsignal(number) for number in BOTH}
    for number in BOTH:
        signal.signal(number, lambda number, _: seen.append(signal.Signals(number)))
    handlers = [signal.getsignal(number) for number in BOTH]
    yield seen
    now = [signal.getsignal(number) for number in BOTH]
    for number, handler in before.items():
        signal.signal(number, handler)
    assert now == handlers, "the handlers from before are back"


@pytest.mark.parametrize("first", BOTH)
@pytest.mark.parametrize("second", BOTH)
def test_the_first_is_a_request_and_the_second_acts(usual, capsys, first, second):
    with stop_on_signals() as stop:
        assert not stop
        signal.raise_signal(first)
        assert stop
        assert stop.signal_name == first.name
        assert usual == []
        assert f"{first.name}: finishing this step" in capsys.readouterr().out
        signal.raise_signal(second)
        assert usual == [second]
    signal.raise_signal(first)
    assert usual == [second, first]


def test_no_signal_no_request(usual):
    with stop_on_signals() as stop:
        pass
    assert not stop
    signal.raise_signal(signal.SIGTERM)
    assert usual == [signal.SIGTERM]


def test_handlers_come_back_after_an_exception(usual):
    def fail():
        with stop_on_signals():
            raise RuntimeError("in a step")

    with pytest.raises(RuntimeError, match="in a step"):
        fail()
    signal.raise_signal(signal.SIGINT)
    assert usual == [signal.SIGINT]


def test_ctrl_c_twice_is_a_keyboard_interrupt():
    """With Python's own handler the second Ctrl-C ends the program."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with stop_on_signals() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
