"""Walks over the tokens of an answer, and counts how large it gets."""

from rlvr_jax.verifiers.algebra import tree
from rlvr_jax.verifiers.algebra.lexer import STOP, Token
from rlvr_jax.verifiers.algebra.tree import ParseError


class Cursor:
    """A place in a list of tokens."""

    def __init__(self, found: list[Token]):
        """At the first of these tokens."""
        self.tokens = found
        self.at = 0
        self.depth = 0
        """Brackets, signs and exponents around this place."""
        self.bars = 0
        """Open absolute values, in which | closes."""
        self._nodes = 0

    def peek(self, ahead: int = 0) -> Token:
        """The next token, or one further on; STOP past the end."""
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else STOP

    def next(self) -> Token:
        """Takes the next token.

        Raises:
          tree.TooLarge: the answer has too many parts.
        """
        token = self.peek()
        self.at += 1
        self._nodes += 1
        if self._nodes > tree.MAX_NODES:
            raise tree.TooLarge("an answer of too many parts")
        return token

    def sees(self, *texts: str) -> bool:
        """Whether the next token is one of these signs or commands."""
        token = self.peek()
        return token.kind in ("sign", "name") and token.text in texts

    def skip(self, *texts: str) -> bool:
        """Takes the next token if it is one of these; says whether it was."""
        if self.sees(*texts):
            self.next()
            return True
        return False

    def need(self, *texts: str) -> str:
        """Takes the next token, which must be one of these.

        Raises:
          tree.ParseError: it is another.
        """
        if not self.sees(*texts):
            raise ParseError(f"expected {texts[0]!r}, got {self.peek().text!r}")
        return self.next().text

    def enter(self) -> None:
        """Goes one level deeper; the caller lowers `depth` again.

        Raises:
          tree.TooLarge: that is too deep.
        """
        self.depth += 1
        if self.depth > tree.MAX_DEPTH:
            raise tree.TooLarge("an answer nested too deeply")
