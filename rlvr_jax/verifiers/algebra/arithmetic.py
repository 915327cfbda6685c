"""Sums, products, powers and signs: the middle of the grammar."""

from rlvr_jax.verifiers.algebra import notation, tree
from rlvr_jax.verifiers.algebra.cursor import Cursor
from rlvr_jax.verifiers.algebra.numbers import number_node
from rlvr_jax.verifiers.algebra.tree import Node, ParseError


class Arithmetic(Cursor):
    """Reads sums of products of powers of what `atom` reads."""

    def atom(self) -> Node:
        """A number, symbol, function or bracket; defined in `atoms`."""
        raise NotImplementedError

    def tex_argument(self) -> Node:
        """A LaTeX argument; defined in `atoms`."""
        raise NotImplementedError

    def sum(self) -> Node:
        """Terms joined by + - and +-; or words."""
        if self.peek().kind == "text":
            return self._words()
        terms = [self._term()]
        while self.sees("+", "-", "\\pm", "\\mp"):
            sign = self.next().text
            term = self._term()
            if sign in ("+", "-"):
                terms.append(tree.negative(term) if sign == "-" else term)
            else:
                sofar = terms[0] if len(terms) == 1 else Node("add", tuple(terms))
                terms = [Node(sign[1:], (sofar, term))]
        return terms[0] if len(terms) == 1 else Node("add", tuple(terms))

    def _words(self) -> Node:
        words = []
        while self.peek().kind in ("text", "letter", "number"):
            words.append(self.next().text)
        return Node("text", (), " ".join(words))

    def _term(self) -> Node:
        if self.sees("+", "-", "\\pm", "\\mp"):
            return self.signed(self._term)
        factors = [self.factor()]
        while True:
            if self.peek().text in notation.TIMES and self.peek().kind != "text":
                self.next()
                factors.append(self.factor())
            elif self.peek().text in notation.OVER and self.peek().kind != "text":
                self.next()
                top = factors[0] if len(factors) == 1 else Node("mul", tuple(factors))
                factors = [Node("div", (top, self.factor()))]
            elif self.starts_atom():
                self._beside(factors)
            else:
                break
        return product(factors)

    def _beside(self, factors: list[Node]) -> None:
        """Reads a factor without a sign before it, or a mixed number's fraction."""
        whole, mixed = factors[-1], self._continues_number()
        part, marks = self.factor_beside(whole), []
        while part.op in ("pct", "deg"):  # 12 1/2 %
            marks.append(part.op)
            part = part.args[0]
        if (
            mixed
            and _is_whole(whole)
            and part.op == "div"
            and all(map(_is_whole, part.args))
        ):
            part = Node("add", (factors.pop(), part))
        for mark in reversed(marks):
            part = Node(mark, (part,))
        factors.append(part)

    def _continues_number(self) -> bool:
        r"""Whether digits end here and a fraction begins: 2\frac12, no 2(\frac12)."""
        ahead = int(self.sees("{"))
        fraction = self.peek(ahead).text in notation.FRACTIONS
        ascii_fraction = self.peek().kind == "number" and self.peek(1).text == "/"
        digits = self.tokens[self.at - 1].kind == "number"
        return digits and (fraction or ascii_fraction)

    def signed(self, operand) -> Node:
        """An operand with a sign before it."""
        self.enter()
        sign = self.next().text
        node = operand()
        self.depth -= 1
        if sign == "+":
            return node
        return tree.negative(node) if sign == "-" else Node(sign[1:], (node,))

    def factor_beside(self, left: Node) -> Node:
        """A factor without a sign before it; a number beside a number is none."""
        if self.peek().kind == "number" and left.op in ("number", "div"):
            if left.op == "number" and self.peek(1).text == "/":
                return self._ascii_fraction(left)
            raise ParseError("two numbers side by side")
        return self.factor()

    def _ascii_fraction(self, whole: Node) -> Node:
        """The 1/3 of 333 1/3; `_beside` adds it to the whole number."""
        top, _, bottom = self.next(), self.next(), self.peek()
        if bottom.kind != "number" or len(whole.args):
            raise ParseError("two numbers side by side")
        self.next()
        parts = (number_node(top.text), number_node(bottom.text))
        return Node("div", parts)

    def factor(self) -> Node:
        """A base with its exponent and what follows it: ! % degrees."""
        if self.sees("+", "-", "\\pm", "\\mp"):
            return self.signed(self.factor)
        node = self._postfix(self.atom())
        if not self.skip("^"):
            return node
        return self._raised(node)

    def _raised(self, node: Node) -> Node:
        if self.skip("\\circ", "\\degree"):
            return self._postfix(Node("deg", (node,)))
        if self.sees("{") and self.peek(1).text in ("\\circ", "\\degree"):
            if self.peek(2).text == "}":
                self.at += 3
                return self._postfix(Node("deg", (node,)))
        if self.sees("'", "\\prime"):
            self.next()
            return Node("call", (node,), "prime")
        raised = Node("pow", (node, self.exponent()))
        raised = self._postfix(raised)
        if self.skip("^"):
            raise ParseError("two exponents")
        return raised

    def exponent(self) -> Node:
        """What stands after ^; 2^3^4 is 2^(3^4)."""
        if self.sees("+", "-"):
            return self.signed(self.exponent)
        self.enter()
        node = self.atom()
        if not self.sees("{") and self.peek().text == "!":
            node = self._postfix(node)
        if self.skip("^"):  # 2^3^4 is 2^(3^4)
            node = Node("pow", (node, self.exponent()))
        self.depth -= 1
        return node

    def _postfix(self, node: Node) -> Node:
        for _ in range(tree.MAX_DEPTH):
            if self.skip("!"):
                double = self.sees("!") and not self.peek().spaced
                if double:
                    self.next()
                node = Node("call", (node,), "factorial2" if double else "factorial")
            elif self.skip("%", "\\%", "\\percent"):
                node = Node("pct", (node,))
            elif self.skip("\\circ", "\\degree"):
                node = Node("deg", (node,))
            elif self.skip("'"):
                node = Node("call", (node,), "prime")
            else:
                return node
        raise tree.TooLarge("too many signs after a number")

    def starts_atom(self) -> bool:
        """Whether what comes next multiplies what came before, side by side."""
        token = self.peek()
        if token.kind in ("number", "letter", "word", "begin"):
            return True
        if token.kind == "name":
            return token.text not in notation.NO_ATOMS
        return token.text in ("(", "[", "{", "\\{") or (
            token.text == "|" and not self.bars
        )


def product(factors: list[Node]) -> Node:
    """The product of some factors; a percent or degree sign at its end is of it all."""
    if len(factors) >= 2 and factors[-1].op in ("pct", "deg"):
        inner = product([*factors[:-1], factors[-1].args[0]])
        return Node(factors[-1].op, (inner,))
    return factors[0] if len(factors) == 1 else Node("mul", tuple(factors))


def _is_whole(node: Node) -> bool:
    """A number written without a decimal point."""
    return node.op == "number" and not node.args
