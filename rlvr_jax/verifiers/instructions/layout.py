"""Checks of how a response is laid out: lists, sections, paragraphs, titles, ends.

Each takes the response and the instruction's arguments by name, and says whether the
response follows it. The meanings, odd ones included, are those of IFEval
(google-research/instruction_following_eval, Apache-2.0); every check is linear in the
length of the response, which its regular expressions are not.
"""

import json
import re

_POSTSCRIPTS = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}
_FENCES = ("```json", "```Json", "```JSON", "```")
_OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_HIGHLIGHT = re.compile(r"\*[^\n*]*\*")
_DOUBLE_HIGHLIGHT = re.compile(r"\*\*[^\n*]*\*\*")


def number_bullet_lists(response: str, *, num_bullets: int) -> bool:
    """Exactly so many lines that start with "-", or with "*" and no second "*"."""
    dashes = sum(line.lstrip().startswith("-") for line in response.split("\n"))
    return dashes + _star_bullets(response) == num_bullets


def _star_bullets(response: str) -> int:
    """Lines that start with one star; a star alone takes the next line as its text."""
    count = 0
    lines = iter(response.split("\n"))
    for line in lines:
        text = line.lstrip()
        if text.startswith("*") and not text.startswith("**"):
            if text == "*" and next(lines, None) is None:
                break  # a star at the very end is no bullet
            count += 1
    return count


def number_highlighted_sections(response: str, *, num_highlights: int) -> bool:
    """At least so many *marked* pieces; one in **double** stars counts likewise."""
    single = [match.strip("*") for match in _HIGHLIGHT.findall(response)]
    double = [match[2:-2] for match in _DOUBLE_HIGHLIGHT.findall(response)]
    return sum(bool(piece.strip()) for piece in single + double) >= num_highlights


def multiple_sections(
    response: str, *, section_spliter: str, num_sections: int
) -> bool:
    """At least so many marks such as "SECTION 1" (the pattern's spelling decides)."""
    marks = _pattern(section_spliter.strip(), r"\s?\d+").findall(response)
    return len(marks) >= num_sections


def number_paragraphs(response: str, *, num_paragraphs: int) -> bool:
    """Exactly so many paragraphs between dividers `***`, no inner one empty."""
    paragraphs = response.split("***")
    filled = [bool(paragraph.strip()) for paragraph in paragraphs]
    return all(filled[1:-1]) and sum(filled) == num_paragraphs


def nth_paragraph_first_word(
    response: str, *, num_paragraphs: int, nth_paragraph: int, first_word: str
) -> bool:
    """Exactly so many paragraphs between empty lines; the n-th starts with the word.

    Empty ones do not count for the number, but do for the n: as in IFEval.
    """
    paragraphs = response.split("\n\n")
    filled = sum(bool(paragraph.strip()) for paragraph in paragraphs)
    if filled != num_paragraphs or not 1 <= nth_paragraph <= filled:
        return False
    words = paragraphs[nth_paragraph - 1].split(maxsplit=1)
    if not words:
        return False
    word = re.split(r"[.,?!'\"]", words[0].lstrip("'").lstrip('"'), maxsplit=1)[0]
    return word.lower() == first_word.lower()


def title(response: str) -> bool:
    """A <<title>> within one line, with something inside."""
    for line in response.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if 0 <= start < end and line[start : end + 2].lstrip("<").rstrip(">").strip():
            return True
    return False


def postscript(response: str, *, postscript_marker: str) -> bool:
    """The marker of a postscript somewhere, in either case, dots and all."""
    marker = postscript_marker.strip()
    pattern = _pattern(_POSTSCRIPTS.get(marker, marker.lower()))
    return pattern.search(response.lower()) is not None


def _pattern(source: str, rest: str = "") -> re.Pattern:
    """An argument as a regular expression; literally, if it is none."""
    try:
        return re.compile(source + rest)
    except re.error:
        return re.compile(re.escape(source) + rest)


def number_placeholders(response: str, *, num_placeholders: int) -> bool:
    """At least so many pieces in [square brackets], each within one line."""
    count = 0
    for line in response.split("\n"):
        at = line.find("[")
        while at >= 0 and (end := line.find("]", at)) >= 0:
            count += 1
            at = line.find("[", end)
    return count >= num_placeholders


def json_format(response: str) -> bool:
    """The whole response is JSON, alone or in a code fence."""
    text = response.strip()
    for fence in _FENCES:
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def two_responses(response: str) -> bool:
    """Two different answers with ****** between them."""
    parts = response.split("******")
    if not all(part.strip() for part in parts[1:-1]):
        return False
    answers = [part.strip() for part in parts if part.strip()]
    return len(answers) == 2 and answers[0] != answers[1]


def constrained_response(response: str) -> bool:
    """One of the three set answers ("My answer is yes.") somewhere."""
    return any(option in response for option in _OPTIONS)


def end_checker(response: str, *, end_phrase: str) -> bool:
    """The phrase at the end, in either case; a closing quotation mark may follow."""
    text = response.strip().strip('"').lower()
    return text.endswith(end_phrase.strip().lower())


def repeat_prompt(response: str, *, prompt_to_repeat: str) -> bool:
    """The request at the start, in either case."""
    return response.strip().lower().startswith(prompt_to_repeat.strip().lower())


def quotation(response: str) -> bool:
    """All of it between two double quotation marks."""
    text = response.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'
