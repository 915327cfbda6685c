"""Language consistency: OBJ-09, VER-04. Counts are by hand."""

import pytest

from rlvr_jax.verifiers.base import Sample, Status, apply
from rlvr_jax.verifiers.identify import words
from rlvr_jax.verifiers.language import prose, share
from rlvr_jax.verifiers.registry import resolve
from tests.verifiers.test_identify import SENTENCES


def judge(name, completion, question="", **meta):
    return apply(resolve(name), Sample(name, completion, None, question, meta))


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("ab cd ef 你好", "en", 0.75),  # 3 of 4 words
        ("ab cd 你好", "en", 2 / 3),
        ("ab cd 你好", "zh", 1 / 3),
        ("ab cd ef привет", "ru", 0.25),
        ("我们 看到 四个 apples", "zh", 0.75),
        ("설명 합니다 여기 because", "ko", 0.75),
        ("これは本です because", "ja", 0.8),  # kana 2 + 1 words, kanji 1
        ("यह एक किताब because", "hi", 0.75),
        ("هذا كتاب جديد because", "ar", 0.75),
        ("สวัสดีครับผม because", "th", 0.75),  # 12 letters are 3 words
        ("The end is near. Das Ende ist nah.", "en", 0.5),
        ("The end is near. Das Ende ist nah.", "de", 0.5),
        ("La fin est proche. The end is near.", "fr", 0.5),
        ("El fin está cerca. O fim não está perto.", "es", 4 / 9),
        ("La fine è vicina. The end is near.", "it", 0.5),
        ("O fim não está perto. The end is near.", "pt", 5 / 9),
        ("这个答案是四。これは答えです。", "zh", 3 / 8),  # then 5 Japanese words
    ],
)
def test_share_of_target_words(text, language, expected):
    """OBJ-09: the fraction, on strings whose fraction is known."""
    assert share(text, language) == pytest.approx(expected, abs=1e-12)


def test_a_change_of_language_inside_a_sentence():
    """Eight words are judged together; those that tell nothing, by the sentence."""
    english, german = (
        "the sea is deep and it is cold",
        "der See ist tief und er ist warm",
    )
    assert (
        share(f"{english} {german}", "en") == share(f"{english} {german}", "de") == 0.5
    )
    names = "Turm Burg Haus Schloss Garten Wiese Acker Feld"
    assert share(names, "en") == 1.0
    assert share(f"{german} {names}", "en") == 0.0


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_wholly_its_own(language):
    assert share(SENTENCES[language], language) == 1.0
    own = sum(word.weight for word in words(SENTENCES[language]))
    other = SENTENCES["en" if language != "en" else "de"]  # 13 words each
    both = f"{SENTENCES[language]}\n{other}"
    assert share(both, language) == pytest.approx(own / (own + 13), abs=1e-12)


@pytest.mark.parametrize(
    "left_out",
    [
        "$the\\ value$",
        "$$\nthe = x\n$$",
        "\\(the\\)",
        "\\[ the \\]",
        "\\begin{align} the &= x \\end{align}",
        "`the code`",
        "```python\nfor the in code: pass\n```",
        "https://the.example/page",
        "x1 = foo_bar(y2)",
        "<b>",
        "sin π",
        "\\frac",
    ],
)
def test_code_and_mathematics_are_left_out(left_out):
    """In Chinese text each of these would count as English words."""
    text = f"这个答案 {left_out} 是四"
    assert share(text, "zh") == 1.0
    if left_out != "sin π":  # names of functions are words in a Latin text
        assert prose(left_out).replace("foo_bar", "").strip(" =()") == ""


def test_the_reward_reads_the_thoughts():
    """R1: the words of the chain of thought; the answer's language is free."""
    verdict = judge("language", "<think>ab cd ef 你好</think>四", language="en")
    assert (verdict.score, verdict.status) == (0.75, Status.WRONG)
    assert judge("language", "ab cd</think>四", language="en").score == 1.0
    assert judge("language", "我们 四", language="en").score == 0.0


def test_where_the_target_comes_from():
    """meta, else the question's language, else English."""
    thoughts = f"<think>{SENTENCES['de']}</think>4"
    assert judge("language", thoughts, language="de").score == 1.0
    assert judge("language", thoughts, question=SENTENCES["de"]).score == 1.0
    assert judge("language", thoughts, question=SENTENCES["en"]).score == 0.0
    assert judge("language", thoughts).score == 0.0
    verdict = judge("language", thoughts, language="xx")
    assert verdict.status is Status.BAD_REFERENCE


def test_no_words_earn_nothing():
    for name in ("language", "language:same"):
        assert judge(name, "<think>$x$</think> 4").status is Status.UNPARSEABLE
    assert share("4 + 4", "en") is None
    with pytest.raises(ValueError, match="unknown language 'xx'; known: ar, bg"):
        share("a", "xx")


@pytest.mark.parametrize(
    ("question", "thoughts", "answer", "score"),
    [
        ("fr", "fr", "fr", 1.0),
        ("fr", "en", "fr", 0.0),
        ("fr", "fr", "en", 0.0),
        ("zh", "zh", None, 1.0),  # a formula agrees with any language
        ("ja", "zh", None, 0.0),
    ],
)
def test_one_language_throughout(question, thoughts, answer, score):
    """OBJ-09, VER-04, Magistral: question, thoughts and answer agree, else nothing."""
    said = SENTENCES[answer] if answer else "$x = 4$"
    completion = f"<think>{SENTENCES[thoughts]}</think>{said}"
    assert judge("language:same", completion, SENTENCES[question]).score == score
