"""English sentences, as NLTK's Punkt tokenizer finds them.

IFEval counts sentences with it, so its decisions are part of the benchmark, odd ones
included. Kiss and Strunk, Unsupervised Multilingual Sentence Boundary Detection, 2006,
https://aclanthology.org/J06-4003; NLTK 3.10, where curly quotes close a sentence too.
The trained tables are NLTK's (Apache-2.0), see rlvr_jax/data/packaged/SOURCES.md.
"""

import functools
import gzip
import itertools
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

_WORDS = pathlib.Path(__file__).parents[2] / "data/packaged/punkt_english.txt.gz"

_ABBREVIATIONS = frozenset(
    """a.a a.c a.d a.g a.h a.m a.m.e a.s a.t adm ala ariz aug ave b.f b.v bros c c.i.t
    c.o.m.b c.v calif chg cie co col colo conn corp cos ct d d.c d.h d.w dec dr e e.f
    e.h e.l e.m f f.g f.j feb fla fri ft g g.d g.f g.k ga gen h h.c h.f h.m i.m.s ill
    inc j.b j.c j.j j.k j.p j.r jan jr k kan ky l l.a l.f l.p lt ltd m m.b.a m.d.c m.j
    maj messrs mg mich minn mr mrs ms n n.c n.d n.h n.j n.m n.v n.y nev nov oct ok okla
    ore p p.a.m p.m pa ph.d prof r r.a r.h r.i r.j r.k r.t rep reps s s.a s.a.y s.c
    s.g s.p.a s.s sen sep sept sr st sw t t.j tenn tues u.k u.n u.s u.s.a u.s.s.r v va
    vs vt w w.c w.r w.va w.w wash wed wis yr""".split()
) | {". . "}
_STARTERS = frozenset(
    """according although among both but despite even he however i if in indeed instead
    it many meanwhile moreover most nevertheless nonetheless nor sales separately
    similarly since so some the there these they this though thus under when while
    yet""".split()
)
_NUMBER = "##number##"
_COLLOCATIONS = frozenset(
    [
        (_NUMBER, word)
        for word in """abreast aes business cbot colgate commodities cooper corrections
        credit dividend financing genentech henley insider international leisure
        letters notable pay-fone pegasus pepper review rj wedgestone who
        zimmer""".split()
    ]
    + [("b", name) for name in "edelman levine smith stewart wigton".split()]
    + [("i", "magnin"), ("i", "toussie"), ("j", "aron"), ("j", "fialka")]
    + [("j", "walter"), ("o", "ludcke")]
)

_QUOTES = "\u2018\u2019\u201c\u201d\xab\xbb"
_OUTSIDE_WORDS = rf"[)\";}}\]*:@'({{\[?!{_QUOTES}]"
_RUNS = r"(?:-{2,}|\.{2,}|(?:\.\s){2,}\.)"
_CANDIDATE = re.compile(rf"[.?!](?=(?P<after>{_OUTSIDE_WORDS}|\s+(?P<next>\S+)))")
_TOKEN = re.compile(
    rf"{_RUNS}"
    rf"|[^\s(\"`{{\[:;&#*@)}}\]\-,]\S*?"
    rf"(?=\s|$|{_OUTSIDE_WORDS}|{_RUNS}|,(?=$|\s|{_OUTSIDE_WORDS}|{_RUNS}))"
    r"|\S"
)
_CLOSING = re.compile(rf"[\"')\]}}{_QUOTES}]+?(?:\s+|(?=--)|$)", re.MULTILINE)
_NUMERIC = re.compile(r"-?[.,]?\d[\d,.-]*\.?$")
_INITIAL = re.compile(r"[^\W\d]\.$")
_ELLIPSIS = re.compile(r"\.\.+$")
_BLANKS = " \t\n\r\x0b\x0c"


class _Candidate(NamedTuple):
    """A mark that may end a sentence, with the words on both sides of it."""

    end: int
    next_start: int
    """Where the next sentence would start."""
    context: str


def sentences(text: str) -> list[str]:
    """The sentences of an English text, without the white space between them.

    Example:
      >>> sentences("Dr. Smith came at 5 p.m. He left (in a hurry!) soon.")
      ['Dr. Smith came at 5 p.m.', 'He left (in a hurry!)', 'soon.']
    """
    start = 0
    spans = []
    for candidate in _candidates(text):
        if _holds_break(candidate.context):
            spans.append((start, candidate.end))
            start = candidate.next_start
    spans.append((start, len(text.rstrip())))
    return [text[start:end] for start, end in _with_closing_marks(text, spans)]


def _candidates(text: str) -> Iterator[_Candidate]:
    """The marks to decide on; of several in one word the last stands for all."""
    word_start = word_end = 0
    last = None
    for match in _CANDIDATE.finditer(text):
        before = text[word_end : match.start()]
        # A blank at 0 counts as none, as in NLTK.
        blank = max(0, *(before.rfind(blank) for blank in _BLANKS))
        start = word_end + blank + 1 if blank else word_start
        if last is not None and word_end <= start:
            yield _candidate(text, word_start, last)
        last, word_start, word_end = match, start, match.start()
    if last is not None:
        yield _candidate(text, word_start, last)


def _candidate(text: str, word_start: int, match: re.Match) -> _Candidate:
    next_start = match.start("next") if match["next"] else match.end()
    context = text[word_start : match.end()] + match["after"]
    return _Candidate(match.end(), next_start, context)


def _holds_break(context: str) -> bool:
    """Whether a sentence ends inside of the context, before its last word."""
    tokens = [
        token for line in context.split("\n") for token in _TOKEN.findall(line) if token
    ]
    return any(
        _ends_sentence(token, following)
        for token, following in itertools.pairwise(tokens)
    )


def _ends_sentence(token: str, following: str) -> bool:
    """The decision on a token that may end a sentence, by what follows it."""
    ends, abbreviated, ellipsis = _first_impression(token)
    if not token.endswith("."):
        return ends
    kind = _kind(token)
    kind = kind[:-1] if len(kind) > 1 and kind.endswith(".") else kind
    next_kind = _kind(following)
    if _first_impression(following)[0] and len(next_kind) > 1:
        next_kind = next_kind.removesuffix(".")
    if (kind, next_kind) in _COLLOCATIONS:
        return False
    initial = _INITIAL.match(token) is not None
    starts = _starts_sentence(following, next_kind)
    capitalised = following[0].isupper()
    if (abbreviated or ellipsis) and not initial:
        if starts is True or (capitalised and next_kind in _STARTERS):
            return True
    if initial or kind == _NUMBER:
        if starts is False:
            return False
        if initial and starts is None and capitalised and next_kind not in _words():
            return False
    return ends


def _first_impression(token: str) -> tuple[bool, bool, bool]:
    """Whether a token ends a sentence, is an abbreviation, is an ellipsis."""
    if token in (".", "?", "!"):
        return True, False, False
    if _ELLIPSIS.match(token):
        return False, False, True
    if not token.endswith(".") or token.endswith(".."):
        return False, False, False
    word = token[:-1].lower()
    known = word in _ABBREVIATIONS or word.rpartition("-")[2] in _ABBREVIATIONS
    return not known, known, False


def _starts_sentence(token: str, kind: str) -> bool | None:
    """Whether the case of a token says that it starts a sentence; None: it does not."""
    if token in (";", ":", ",", ".", "!", "?"):
        return False
    case = _words().get(kind)
    if token[0].isupper() and case in ("", "~"):
        return True
    if token[0].islower() and case != "~":
        return False
    return None


def _kind(token: str) -> str:
    return _NUMBER if _NUMERIC.match(token) else token.lower()


def _with_closing_marks(
    text: str, spans: list[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Gives quotes and brackets after a full stop to the sentence that they close."""
    moved = 0
    for (start, end), following in zip(spans, [*spans[1:], None], strict=True):
        start += moved
        moved = 0
        if following is not None:
            match = _CLOSING.match(text[following[0] : following[1]])
            if match:
                moved = match.end()
                yield start, following[0] + len(match[0].rstrip())
                continue
        if text[start:end]:
            yield start, end


@functools.cache
def _words() -> dict[str, str]:
    """Words that the training text has in lower case -> their mark in the file."""
    with gzip.open(_WORDS, "rt", encoding="utf8") as file:
        lines = [line.rstrip("\n") for line in file if not line.startswith("#")]
    return {word: mark for word, _, mark in (line.partition("\t") for line in lines)}
