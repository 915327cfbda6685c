"""Any text a model can produce, made safe and short enough to show."""

import unicodedata

# Kept as they are although Unicode calls them control or format characters.
_KEPT = "\n\u200c\u200d"


def visible(text: str) -> str:
    r"""The text with control characters spelled out; line ends stay.

    A terminal would obey an escape sequence, a page could be turned around by a
    direction mark, and a lone surrogate cannot be encoded at all.

    Example:
      >>> print(visible("red\x1b[31m text\x00, tab\tand \u202e\ud800"))
      red\x1b[31m text\x00, tab    and \u202e\ud800
    """
    text = text.replace("\r\n", "\n").replace("\t", "    ")
    return "".join(_spelled(char) if _hidden(char) else char for char in text)


def head_and_tail(text: str, limit: int) -> str:
    """Both ends of a text longer than `limit`, around a marker; others unchanged.

    A completion's end holds its answer, so the middle is what goes.

    Example:
      >>> head_and_tail("abcdefghij", 4)
      'ab [... 6 characters ...] ij'
    """
    if len(text) <= limit:
        return text
    head = limit // 2
    tail = text[len(text) - (limit - head) :]
    return f"{text[:head]} [... {len(text) - limit:,} characters ...] {tail}"


def tail(text: str, limit: int) -> str:
    """The end of a text longer than `limit`, after a marker; others unchanged.

    Example:
      >>> tail("abcdefghij", 4)
      '[... 6 characters ...] ghij'
    """
    if len(text) <= limit:
        return text
    return f"[... {len(text) - limit:,} characters ...] {text[len(text) - limit :]}"


def duration(seconds: float | int) -> str:
    """A length of time for reading.

    Example:
      >>> duration(7), duration(245), duration(7380)
      ('7 s', '4 min 05 s', '2 h 03 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def _hidden(char: str) -> bool:
    # Cc control, Cf format (direction marks), Cs surrogates, Zl and Zp separators.
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return char not in _KEPT and unicodedata.category(char) in kinds


def _spelled(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
