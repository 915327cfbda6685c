"""Words that are mathematics: "all real numbers", "no solution"."""

import re

from rlvr_jax.verifiers.algebra.tree import Node

_ALL = re.compile(
    r"(?:(?:the\s+)?set\s+of\s+)?(?:all|any)\s+(?:the\s+)?real(?:s|\s+numbers?)?"
    r"|(?:the\s+)?real\s+numbers|(?:the\s+)?reals",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"(?:there\s+(?:is|are)\s+)?no\s+(?:real\s+|such\s+)?(?:solutions?|roots?)"
    r"|(?:the\s+)?empty\s+set|(?:there\s+are\s+)?no\s+such\s+(?:values?|numbers?)",
    re.IGNORECASE,
)
_WRAPPER = re.compile(r"\\(?:text|textbf|textrm|mathrm|mbox)\s*\{([^{}]*)\}")


def meaning(text: str) -> Node | None:
    r"""The set that a phrase stands for; None of anything else.

    Example:
      >>> meaning(r"\text{All real numbers}").value, meaning("no solution").op
      ('\\mathbb{R}', 'set')
    """
    if len(text) > 60:
        return None
    plain = _WRAPPER.sub(r"\1", text).strip(" .")
    if _ALL.fullmatch(plain):
        return Node("symbol", (), "\\mathbb{R}")
    if _NOTHING.fullmatch(plain):
        return Node("set")
    return None
