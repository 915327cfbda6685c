"""Constraints beyond IFEval's: the seeds' own examples and what they imply."""

import pytest

from rlvr_jax.verifiers.instructions import content, detection, extra, layout


@pytest.mark.parametrize(
    ("response", "count"),
    [
        ("- a\n- b\n- c", 3),
        ("Here:\n\n* a\n  * b\n+ c\n• d", 4),
        ("1. a\n2) b\n(3) c", 3),
        ("- a\n---\n**b**\n-c", 1),
        ("```\n- a\n- b\n```\n- c", 1),
        ("- \n-\n", 0),
        ("", 0),
    ],
)
def test_exactly_n_bullet_points(response, count):
    """VER-03: "exactly 3 bullet points", counted as a reader would."""
    assert extra.bullets(response, num_bullets=count)
    assert not extra.bullets(response, num_bullets=count + 1)
    assert extra.bullets(response, num_bullets=count + 1, relation="less than")


@pytest.mark.parametrize("comma", [",", "\uff0c", "\u3001", "\u060c", "\ufe50"])
def test_no_commas_of_any_script(comma):
    """VER-03: "no commas": ASCII, full-width, ideographic, Arabic, small."""
    assert not extra.no_commas(f"a{comma} b")
    assert extra.no_commas("a; b. c' d\u201a")
    assert layout.quotation('"a"')
    assert content.no_comma(f"a{comma} b") is (comma != ",")


def test_starts_characters_and_lines():
    assert extra.starts_with("  Dear all. Hello", start_phrase="dear all")
    assert not extra.starts_with("Oh dear all", start_phrase="dear all")
    assert extra.number_characters(" abc\n", num_characters=3, relation="exactly")
    assert not extra.number_characters("abcd", num_characters=3, relation="at most")
    assert extra.number_lines("a\n\nb\n", num_lines=2, relation="exactly")
    assert not extra.number_lines("a\nb", num_lines=2, relation="more than")


@pytest.mark.parametrize("detector", ["langdetect", "own"])
def test_languages_with_either_detector(detector, monkeypatch):
    """Where langdetect is not installed, the project's own detector answers."""
    if detector == "own":
        monkeypatch.setattr(detection, "_langdetect", lambda: None)
    else:
        pytest.importorskip("langdetect")
    chinese = "这条河又长又宽。每天早上都有很多船从古老的桥下经过。"
    german = "Der Fluss ist lang und breit, und viele Boote fahren vorbei."
    assert content.response_language(chinese, language="zh")
    assert content.response_language(german, language="de")
    assert not content.response_language(german, language="en")
    assert content.response_language("12 + 3 !", language="en")  # no words: as IFEval
    assert not content.english_capital(german.upper())
    assert not content.english_lowercase(german.lower())
