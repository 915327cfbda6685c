r"""One spelling for what people write in many: Unicode to LaTeX, marks taken away.

Works on the text of one answer, before it is read as mathematics. No meaning is
decided here; 1,234 stays as it is.
"""

import re
import unicodedata

_SIGNS = {
    **dict.fromkeys("\u2212\u2013\u2014\u2010\u2011\ufe63\uff0d", "-"),
    **dict.fromkeys("\u00d7\u2715\u22c5\u00b7\u2219\u2217", "*"),
    **dict.fromkeys("\u00f7\u2215\u2044\uff0f", "/"),
    **dict.fromkeys("\u00a0\u2007\u2009\u202f\u200a\u2002\u2003\u3000", " "),
    **dict.fromkeys("\u20ac\u00a3\u00a5\u20b9", " "),
    **dict.fromkeys("\u2032\u2019", "'"),
    **dict.fromkeys("\u201c\u201d", '"'),
    "\u2264": r" \le ",
    "\u2a7d": r" \le ",
    "\u2265": r" \ge ",
    "\u2a7e": r" \ge ",
    "\u2260": r" \ne ",
    "\u2248": r" \approx ",
    "\u2243": r" \approx ",
    "\u221e": r"\infty ",
    "\u221a": r"\usqrt ",
    "\u222a": r" \cup ",
    "\u2229": r" \cap ",
    "\u2205": r"\emptyset ",
    "\u2208": r" \in ",
    "\u2216": r" \setminus ",
    "\u00b1": r" \pm ",
    "\u2213": r" \mp ",
    "\u00b0": r"^\circ ",
    "\u211d": r"\mathbb{R}",
    "\u3001": ", ",
    "\uff0c": ", ",
    "\uff1b": "; ",
    "\u3002": ".",
    "\u27e8": "(",
    "\u27e9": ")",
    "\u2308": r"\lceil ",
    "\u2309": r"\rceil ",
    "\u230a": r"\lfloor ",
    "\u230b": r"\rfloor ",
}
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron "
    "pi rho finalsigma sigma tau upsilon phi chi psi omega"
).split()
_SIGNS |= {chr(0x3B1 + i): rf"\{name} " for i, name in enumerate(_GREEK)}
_SUPERSCRIPTS = (
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b\u207f"
)
_SUBSCRIPTS = "\u2080\u2081\u2082\u2083\u2084\u2085\u2086\u2087\u2088\u2089"
_RAISED = str.maketrans(_SUPERSCRIPTS, "0123456789-n")
_LOWERED = str.maketrans(_SUBSCRIPTS, "0123456789")
_FRACTIONS = {
    "\u00bd": "1/2",
    "\u2153": "1/3",
    "\u2154": "2/3",
    "\u00bc": "1/4",
    "\u00be": "3/4",
    "\u215b": "1/8",
    "\u215c": "3/8",
    "\u215d": "5/8",
    "\u215e": "7/8",
}
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_INVISIBLE = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufe0e\ufe0f\u00ad\u034f]"
)

_COMMANDS = "frac|dfrac|tfrac|cfrac|sqrt|left|right|pi|text|infty|cdot|times|cup|pm|ln"
_ESCAPED_TWICE = re.compile(rf"\\\\(?=(?:{_COMMANDS})(?![a-zA-Z]))")
_LAYOUT = re.compile(
    r"\\(?:left|right)\s*\.|\\(?:left|right|middle|[bB]igg?[lrm]?|displaystyle"
    r"|textstyle|limits|nolimits|mathstrut|strut|rm|bf|it)(?![a-zA-Z])"
)
_THOUSANDS_GAP = re.compile(r"(?<=[0-9])\s*(?:\{,\}|,\s*\\!)\s*(?=[0-9])")
_SPACE = re.compile(
    r"(?<!\\)\\[,;:> ]|\\q?quad|\\(?:thinspace|enspace|hfill)(?![a-zA-Z])|~"
    r"|\\hspace\*?\s*\{[^{}]*\}|\\phantom\s*\{[^{}]*\}|[\n\t\r]"
)
_MATH_MARKS = re.compile(r"(?<!\\)\\[()\[\]]|(?<!\\)\$|(?<!\\)\\!")
_ALIGNMENT = re.compile(
    r"\\(?:begin|end)\s*\{(?:align|aligned|equation|gather|gathered|split|math|cases)\*?\}"
)
_RAISED_O = re.compile(
    r"(?<=[0-9])\s*\^\s*(?:o\b|\{\s*(?:o|\\text\s*\{\s*o\s*\})\s*\})"
)
_EMPTY_ROOT = re.compile(r"\\sqrt\s*\{\s*\}(?=\s*\{)")
_ENDS = " \t\n*_`"


def visible(text: str) -> str:
    """The text without characters that are not seen, digits of all scripts as 0-9.

    Example:
      >>> visible("1\\u200b0 \\uff14 \\u0664")
      '10 4 4'
    """
    if text.isascii():
        return text
    text = _INVISIBLE.sub("", text)
    return _NOT_ASCII.sub(lambda match: _plain_character(match[0]), text)


def _plain_character(character: str) -> str:
    if "\uff01" <= character <= "\uff5e":
        return chr(ord(character) - 0xFEE0)
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    return character


_OVER = re.compile(r"\{([^{}]*)\\over(?![a-zA-Z])([^{}]*)\}")
_EMPTY_BRACES = re.compile(r"(?<=[0-9,.])\{\}")
_JOINER_BRACES = re.compile(r"(?<![a-zA-Z])\{\s*(or|and)\s*\}")
_BROKEN_ROW = re.compile(r"(?<!\\)\\(?=[0-9-])")
_LEADING_RELATION = re.compile(
    r"^\s*(?:\\approx|\\sim|\\Rightarrow|\\therefore|[=-]>|=)(?![a-zA-Z])\s*"
)


def latex(text: str) -> str:
    r"""The text of an answer with layout gone and Unicode signs as LaTeX commands.

    Example:
      >>> latex("$\\left( \u221a3 ,\\; 2\u03c0 \\right)$.")
      '( \\usqrt 3 , 2\\pi )'
    """
    if not text.isascii():
        text = _ascii_signs(visible(text))
    if "\\" in text:
        text = _latex_layout(text)
    if "{" in text:
        text = _JOINER_BRACES.sub(r" \1 ", _EMPTY_BRACES.sub("", text))
    if "^" in text:
        text = _RAISED_O.sub(r"^\\circ ", text)
    text = _MATH_MARKS.sub(" ", text.replace(r"\$", " "))
    text = trimmed(re.sub(r"\s+", " ", text))
    return _LEADING_RELATION.sub("", text)


def trimmed(text: str) -> str:
    """Without the marks around an answer: emphasis, quotes, a final dot, outer braces.

    Example:
      >>> trimmed("**{42}.**")
      '42'
    """
    before = None
    while text != before:
        before = text
        text = text.strip(_ENDS)
        if len(text) > 2 and text[0] == text[-1] and text[0] in "\"'":
            text = text[1:-1]
        if text.endswith(tuple(".,;:")) and not text.endswith("..."):
            text = text[:-1]
    inner = _without_outer_braces(text)
    return inner if inner == text else trimmed(inner)


def _without_outer_braces(text: str) -> str:
    opened = len(text) - len(text.lstrip("{"))
    closed = len(text) - len(text.rstrip("}"))
    depth = min(opened, closed)
    if not depth or "{" in text[depth:-depth] or "}" in text[depth:-depth]:
        return text
    inner = text[depth:-depth].strip()
    return text if "," in inner or not inner else inner  # {1, 2} is a set


def _aligned(text: str) -> str:
    """The lines of an align environment as a list; matrices keep their rows."""
    plain = _ALIGNMENT.sub(" ", text)
    if plain == text or r"\begin" in plain:
        return plain
    return plain.replace("&", " ").replace(r"\\", ", ")


def _ascii_signs(text: str) -> str:
    text = re.sub(
        f"[{_SUPERSCRIPTS}]+", lambda m: f"^{{{m[0].translate(_RAISED)}}}", text
    )
    text = re.sub(
        f"[{_SUBSCRIPTS}]+", lambda m: f"_{{{m[0].translate(_LOWERED)}}}", text
    )
    for sign, fraction in _FRACTIONS.items():
        if sign in text:
            text = re.sub(f"(?<=[0-9])\\s*{sign}", f" {fraction} ", text)
            text = text.replace(sign, f" {fraction} ")
    return "".join(_SIGNS.get(character, character) for character in text)


def _latex_layout(text: str) -> str:
    if r"\begin" not in text:
        text = _ESCAPED_TWICE.sub(r"\\", text)
    else:
        text = _BROKEN_ROW.sub(r"\\\\", _aligned(text))
    if r"\over" in text:
        text = _OVER.sub(r"\\frac{\1}{\2}", text)
    text = _EMPTY_ROOT.sub(r"\\sqrt", text)
    text = _LAYOUT.sub(" ", text)
    text = _THOUSANDS_GAP.sub("{,}", text)
    return _SPACE.sub(" ", text)
