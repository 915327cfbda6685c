"""Which language a text is in. One sentence of each, written for these tests."""

import json
import pathlib
import time

import pytest

from rlvr_jax.verifiers.identify import LANGUAGES, identify, words

PATH = pathlib.Path(__file__).parents[1] / "data" / "verify" / "languages.json"
SENTENCES = json.loads(PATH.read_text(encoding="utf8"))


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_of_each_language(language):
    """As written, in capitals, and with an English term in brackets."""
    text = SENTENCES[language]
    assert identify(text) == language
    assert identify(f"{text} (Site Reliability)") == language
    if language != "el":  # capitals lose their accents' final form
        assert identify(text.upper()) == language


def test_every_language_of_ifeval_is_known():
    """The 30 codes that instructions_util of the original code lists."""
    codes = (
        "en es pt ar hi fr ru de ja it bn uk th ur ta te bg ko pl he fa vi ne sw kn mr "
        "gu pa ml fi"
    ).split()
    assert set(codes) <= set(LANGUAGES)


@pytest.mark.parametrize("text", ["", "42 + 1 = 43", "Smith Jones", "YES", "!?"])
def test_too_little_to_tell(text):
    assert identify(text) is None


def test_a_little_kana_makes_it_japanese():
    assert identify("東京大学合格発表日程を確認") == "ja"
    assert identify("东京大学公布录取名单") == "zh"


def test_words_and_what_they_weigh():
    """Four Thai letters and two Han characters weigh one word; rounded up."""
    found = words("Don’t 你好吗 สวัสดี 3x")  # noqa: RUF001
    assert [(word.text, word.weight) for word in found] == [
        ("don't", 1),
        ("你好吗", 2),
        ("สวัสดี", 2),
        ("x", 1),
    ]


def test_time_is_linear():
    start = time.process_time()
    identify("the river and l'été 你好 " * 5_000)
    assert time.process_time() - start < 2
