r"""Where in a completion the answer stands, if it gives exactly one.

In this order: <answer> tags, boxes (\boxed, \fbox), a #### line, a sentence such as
"the answer is ...", the last value of the text. Marks of the first kind found decide;
what they hold must be one answer, which `math` checks. Boxes side by side, as in
\boxed{1} and \boxed{2}, are one answer that is a list; boxes apart are several.
"""

import itertools
import re
from typing import NamedTuple

from rlvr_jax.verifiers import hedges, prose
from rlvr_jax.verifiers.algebra.normalise import visible

_BRACE = re.compile(
    r"(?P<box>\\(?:f?box(?:ed)?|framebox)\s*\{)|\\[{}]|\\\\(?![a-zA-Z])|[{}]"
)
_BOX_WITHOUT_SLASH = re.compile(r"(?<![\\a-zA-Z])\x08?boxed(?=\s*\{)|\x08oxed(?=\s*\{)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_LONG_BLANK = re.compile(r"[ \t]{3,}|\n{3,}")
_LABEL = re.compile(
    r"^\s*\\(?:text|textbf|textrm|mathrm)\s*\{[^{}0-9]{0,60}(?:[:=]|\bis)\s*\}(?=\s*\S)"
)
"""Words before the value within a box, as in \\boxed{\\text{Answer: }5}."""
_MARKUP = re.compile(r"<(b|strong|em|i|u)>([^<>]{1,80})</\1>")
_TAG = re.compile(r"(</?answer>)", re.IGNORECASE)
_EMPHASIS = re.compile(r"(?<![\w)*])\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*(?![\w(*])")
_HASHES = re.compile(r"####[ \t]*(.*)")
_BARE_BOX = re.compile(r"\\boxed\s*(-?[0-9]+(?:\.[0-9]+)?|[A-Z])(?![a-zA-Z0-9.])")
_TURN = re.compile(
    r"<\|(?:im_start|im_end|endoftext|eot_id|end(?=\|)|end_of_(?=t(?:ext|urn))|user|assistant)[^>]*\|?>|</s>|<eos>"
)
_NEGATIVE = re.compile(
    r"(?:(?<![\w-])negative|(?:(?<=\bis )|(?<=\bequals )|(?<=[=:] ))minus)\s+(?=[0-9])",
    re.IGNORECASE,
)
_CALCULATOR = re.compile(r"<<[^<>]*>>")
_GAP = re.compile(
    r"(?:[\s$,;.&*]|\\[()\[\]]|\\[,;: ]|\\q?quad|\\text\s*\{\s*(?:,?\s*(?:and|or))\s*\}"
    r"|\b(?:and|or)\b|\\?[a-zA-Z]{1,5}(?:_\{?\w{1,3}\}?)?(?:\([a-z]\))?\s*=)*"
)
_MINUS = re.compile(r"(?:[=$]|\\[(\[])\s*[-\u2212]\s*$|^[-\u2212]$", re.MULTILINE)
"""Before a box, as in $x = -\\boxed{5}$; no difference, and no item of a list."""
_PERCENT = re.compile(r"\s*(?:\\\)|\$)?\s*(?:\\?%|percent\b|pct\b)")
_VALUE_AHEAD = re.compile(r"[0-9]|\\boxed|\\frac|\\sqrt|\b[A-Z]\b")
_TEXT_WRAPPER = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox|textnormal)\s*\{([^{}]*)\}"
)


class Box(NamedTuple):
    """A box and where it stands: `start` at the backslash, `end` after the brace."""

    text: str
    start: int
    end: int


class Extraction(NamedTuple):
    """The answers that a completion marks, all of which must be the same."""

    answers: tuple[str, ...]
    place: str
    """box, tag, ####, statement or text."""
    problem: str = ""
    """Why there is no answer, or not one."""


def final_answers(completion: str, kind: str = "value") -> Extraction:
    """What the completion gives as its answer.

    Args:
      completion: the text after any thinking block.
      kind: what the reference is: "value", "letter" (of a choice) or "words". It says
        where plain prose is searched, never what is found there.
    """
    text = visible(completion)
    text = _TURN.split(text, maxsplit=1)[0] if "<" in text else text
    text = _MARKUP.sub(r"\2", text) if "</" in text else text
    text = _EMPHASIS.sub(r"\1", _CALCULATOR.sub("", text))
    text = _BARE_BOX.sub(r"\\boxed{\1}", text)
    if "oxed" in text:
        text = _BOX_WITHOUT_SLASH.sub(r"\\boxed", text)
    text = _CONTROL.sub("", text)
    text = _NEGATIVE.sub("-", text) if kind == "value" else text
    text = _LONG_BLANK.sub(lambda match: match[0][:2], text)
    if not text.strip():
        return Extraction((), "text", "an empty answer")
    if tags := _tags(text):
        return _from_tags(text, tags, kind)
    found, unclosed = boxes_and_unclosed(text)
    if found or unclosed:
        return _from_boxes(text, found, unclosed, kind)
    if hashes := _HASHES.findall(text):
        return _checked([_first_value(line, kind) for line in hashes], "####")
    if statements := prose.statements(text, kind):
        return _checked(statements, "statement")
    value, problem = prose.last_value(text, kind)
    return Extraction((value,) if value else (), "text", problem)


def boxes(text: str) -> list[Box]:
    r"""The outermost \boxed{...} and \fbox{...} that close, in order.

    Example:
      >>> [box.text for box in boxes(r"\boxed{\frac{1}{2}} or \fbox{3}")]
      ['\\frac{1}{2}', '3']
    """
    return boxes_and_unclosed(text)[0]


def boxes_and_unclosed(text: str) -> tuple[list[Box], bool]:
    """The boxes, and whether another was opened and not closed; in one pass."""
    if "box" not in text:
        return [], False
    opened: list[re.Match] = []
    closed: list[Box] = []
    for match in _BRACE.finditer(text):
        if match["box"] or match[0] == "{":
            opened.append(match)
        elif match[0] == "}" and opened:
            start = opened.pop()
            if start["box"]:
                while closed and closed[-1].start > start.start():
                    closed.pop()  # boxes within this one
                inside = text[start.end() : match.start()]
                closed.append(Box(inside, start.start(), match.end()))
    return closed, any(match["box"] for match in opened)


def marked_answers(text: str) -> list[str]:
    """What tags, else boxes, else #### lines hold, as written."""
    if tags := _tags(text):
        return [tag.strip() for tag in tags]
    if found := boxes(text):
        return [box.text.strip() for box in found]
    return [line.strip() for line in _HASHES.findall(text)]


def last_line(text: str) -> str:
    """The last line that is not blank; "" if there is none."""
    return text.strip().rpartition("\n")[2].strip()


def without_text_wrapper(text: str) -> str:
    r"""Takes \text{...} and its like away, leaving what they hold."""
    return _TEXT_WRAPPER.sub(r"\1", text)


def _tags(text: str) -> list[str]:
    """What each <answer> holds, up to its end tag or the end of the text."""
    parts = _TAG.split(text)
    return [
        parts[i + 1] for i in range(1, len(parts), 2) if parts[i].lower() == "<answer>"
    ]


def _from_tags(text: str, tags: list[str], kind: str) -> Extraction:
    answers = []
    for tag in tags:
        if inside := boxes(tag):
            answers += [box.text for box in inside]
        else:
            answers += prose.statements(tag, kind) or [tag]
    within = "\0".join(tags)
    outside = [box.text for box in boxes(text) if box.text not in within]
    return _checked([*answers, *outside], "tag")


def _from_boxes(text: str, found: list[Box], unclosed: bool, kind: str) -> Extraction:
    if unclosed:
        return Extraction((), "box", "a box that does not close")
    groups = [[found[0]]]
    for before, box in itertools.pairwise(found):
        if _GAP.fullmatch(text, before.end, box.start):
            groups[-1].append(box)
        else:
            groups.append([box])
    answers = [", ".join(_boxed(text, box, kind) for box in group) for group in groups]
    if any(not box.text.strip() for box in found):
        return Extraction((), "box", "an empty box")
    rest = text[found[-1].end :]
    if (hedge := hedges.AFTER_BOX.match(rest)) and _VALUE_AHEAD.search(hedge[1]):
        return Extraction((), "box", "an answer hedged after the box")
    answers += prose.statements(rest, kind)
    return _checked(answers, "box")


def _boxed(text: str, box: Box, kind: str) -> str:
    """What the box holds, with a minus sign before it and a percent sign behind it."""
    percent = _PERCENT.match(text, box.end)
    inner = box.text
    while len(nested := boxes(inner)) == 1 and nested[0].end - nested[0].start == len(
        inner.strip()
    ):
        inner = nested[0].text
    inner = inner if kind == "letter" else _LABEL.sub("", inner)
    if inner.strip() and _MINUS.search(text, max(0, box.start - 20), box.start):
        inner = f"-({inner})"
    return inner + r"\%" if percent and "%" not in inner else inner


def _first_value(line: str, kind: str) -> str:
    named = prose.statements(line, kind)
    return named[-1] if named else prose.value_at_start(line, kind) or line


def _checked(answers: list[str], place: str) -> Extraction:
    distinct = tuple(dict.fromkeys(answer.strip() for answer in answers))
    if not all(distinct):
        return Extraction((), place, "an empty answer")
    return Extraction(distinct, place)
