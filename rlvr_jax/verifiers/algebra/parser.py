r"""Reads the text of an answer into a tree: recursive descent, no eval, no evaluation.

statement   group ; group ...                    list, groups
group       item , item and item or item ...
item        side = side <= side ...              rel, ratio
side        sum \cup sum ...
sum         term + term - term \pm term
term        factor * factor / factor, or side by side
factor      signs, base ^ exponent, postfix ! % ^\circ
"""

from rlvr_jax.verifiers.algebra import lexer, notation
from rlvr_jax.verifiers.algebra.atoms import Atoms
from rlvr_jax.verifiers.algebra.lexer import STOP
from rlvr_jax.verifiers.algebra.numbers import plain
from rlvr_jax.verifiers.algebra.tree import Node, ParseError
from rlvr_jax.verifiers.algebra.units import UNITS
from rlvr_jax.verifiers.hedges import IN_WORDS


def parse(text: str) -> Node:
    r"""The tree of an answer.

    Args:
      text: as `normalise.latex` returns it.

    Raises:
      tree.ParseError: it cannot be read.
      tree.TooLarge: it is too long or too deep.

    Example:
      >>> parse("x=1").op, parse("[0,1)").value
      ('rel', ('[', ')'))
    """
    return _Parser(lexer.tokens(text, UNITS)).run()


class _Parser(Atoms):
    """Reads lists of relations between sets and sums."""

    def run(self) -> Node:
        """The tree of all tokens."""
        node = self._statement()
        if self.peek() is not STOP:
            raise ParseError(f"unexpected {self.peek().text!r}")
        return node

    def _statement(self) -> Node:
        groups = [self._group()]
        while self.skip(";"):
            groups.append(self._group())
        if len(groups) == 1:
            return groups[0]
        if all(group.op != "list" for group in groups):
            return Node("list", tuple(groups))
        return Node("groups", tuple(groups))

    def _group(self) -> Node:
        start = self.at
        items = self.items((",", "and", "or"))
        if len(items) == 1:
            return items[0]
        joiners = {token.text for token in self.tokens[start : self.at]}
        joiner = "or" if "or" in joiners else "and" if "and" in joiners else ","
        return Node("list", tuple(items), joiner)

    def items(self, separators: tuple[str, ...]) -> list[Node]:
        """The members of a list, between separators of which several may stand."""
        items = [self._item()]
        while self.skip(*separators):
            while self.skip(*separators):  # ", and"
                pass
            items.append(self._item())
        return items

    def _item(self) -> Node:
        self.enter()
        sides, signs = [self._side()], []
        while (token := self.peek()).kind in ("sign", "name"):
            if token.text not in notation.RELATIONS:
                break
            sign = notation.RELATIONS[self.next().text]
            if self.skip("=") and sign in "<>":
                sign += "="
            signs.append(sign)
            sides.append(self._side())
        self.depth -= 1
        if not signs:
            return sides[0]
        if set(signs) == {":"}:
            return Node("ratio", tuple(sides))
        if ":" in signs:
            return _ratio_assignment(sides, signs)
        return Node("rel", tuple(sides), tuple(signs))

    def _side(self) -> Node:
        node = self.sum()
        while self.peek().text in notation.SET_SIGNS and self.peek().kind != "text":
            node = Node(notation.SET_SIGNS[self.next().text], (node, self.sum()))
        words = []
        while self.peek().kind == "text":
            words.append(self.next().text)
            words.extend(self._unit_power())
        if not words and self.skip("\\pmod"):
            words = ["mod " + plain(self.tex_argument())]
        if words and IN_WORDS.search(" ".join(words)):
            raise ParseError("more than a unit after the value")
        return Node("unit", (node,), " ".join(words)) if words else node

    def _unit_power(self) -> list[str]:
        """The rest of a unit such as cm^2, cm^{2} or m/s."""
        if self.skip("^"):
            return ["^" + plain(self.tex_argument())]
        if self.sees("/", "*", "\\cdot") and self.peek(1).kind in ("text", "letter"):
            return [self.next().text, self.next().text, *self._unit_power()]
        return []


def _ratio_assignment(sides: list[Node], signs: list[str]) -> Node:
    """V_1 : V_2 = 11 : 21, whose name is dropped."""
    if signs.count("=") != 1 or set(signs) != {":", "="}:
        raise ParseError("a colon that is no ratio")
    at = signs.index("=")
    left, right = sides[: at + 1], sides[at + 1 :]
    if len(left) < 2 or len(right) < 2:
        raise ParseError("a colon that is no ratio")
    name = Node("ratio", tuple(left))
    return Node("rel", (name, Node("ratio", tuple(right))), ("=",))
