"""Reads a statement token by token."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.serve.pgwire.errors import SYNTAX, WireError
from dpsql.serve.tokens import Token


class Cursor:
    """A position in the tokens of one statement."""

    def __init__(self, text: str, tokens: Sequence[Token], before: int = 0) -> None:
        """Begin at the first token. ``before`` is the end of the token before it in the text."""
        self.text, self._tokens, self._at, self._before = text, tokens, 0, before

    @property
    def passed(self) -> int:
        """The end of the token before this position."""
        return self._tokens[self._at - 1].end if self._at else self._before

    def passed_word(self) -> str:
        """The word before this position."""
        return self._tokens[self._at - 1].word if self._at else ""

    @property
    def gap(self) -> str:
        """The text between the last token and the next, which may hold comments."""
        following = self._tokens[self._at : self._at + 1]
        return self.text[self.passed : following[0].start] if following else ""

    def remaining(self) -> int:
        """The number of tokens that are left."""
        return len(self._tokens) - self._at

    def peek(self, ahead: int = 0) -> str:
        """The word or operator at this position, in lower case; empty for any other token."""
        at = self._at + ahead
        return self._tokens[at].word if at < len(self._tokens) else ""

    def peek_inside(self) -> str:
        """The first word from this position on that is not an opening bracket."""
        ahead = 0
        while self.peek(ahead) == "(":
            ahead += 1
        return self.peek(ahead)

    def next(self) -> Token:
        """Return the token at this position, and move past it."""
        if self._at >= len(self._tokens):
            raise self.unexpected()
        self._at += 1
        return self._tokens[self._at - 1]

    def skip(self, *words: str) -> bool:
        """Move past the token if it is one of these words. Returns whether it was."""
        if self.peek() in words:
            self._at += 1
            return True
        return False

    def expect(self, word: str) -> None:
        """Move past this word, which must be at this position."""
        if not self.skip(word):
            raise self.unexpected()

    def name(self) -> str:
        """Read an identifier."""
        if self.remaining() and self._tokens[self._at].kind in ("word", "quoted"):
            return self.next().name
        raise self.unexpected()

    def dotted(self) -> str:
        """Read a name that may have several parts, in lower case."""
        whole = self.name()
        while self.skip("."):
            whole += "." + self.name()
        return whole.lower()

    def dotted_tokens(self) -> str:
        """Read a name that may have several parts, as it is written."""
        start = self._at
        self.dotted()
        return self.text[self._tokens[start].start : self._tokens[self._at - 1].end]

    def at_number(self) -> bool:
        """Whether a number, perhaps with a sign, is at this position."""
        at = self._at + (self.peek() in ("-", "+"))
        return at < len(self._tokens) and self._tokens[at].kind == "number"

    def integer(self) -> int:
        """Read a whole number."""
        negative = self.skip("-")
        if not negative:
            self.skip("+")
        token = self.next()
        if not token.text.isdecimal() or len(token.text) > 18:
            raise self.unexpected(token)
        return -int(token.text) if negative else int(token.text)

    def constant(self) -> str | None:
        """Read a constant as text. Casts after it are dropped."""
        negative = self.skip("-")
        token = self.next()
        if token.kind not in ("number", "string", "escape", "dollar") and (
            token.word not in ("null", "true", "false")
        ):
            raise self.unexpected(token)
        while self.skip("::"):
            self.name()
        if token.word == "null":
            return None
        return "-" + token.text if negative else token.value

    def rest(self) -> Sequence[Token]:
        """Return all tokens that are left, and move to the end."""
        found = self._tokens[self._at :]
        self._at = len(self._tokens)
        return found

    def inside(self) -> Sequence[Token]:
        """Return the tokens up to the bracket that closes the last one, and move past it."""
        depth, start = 1, self._at
        while depth:
            word = self.next().text
            depth += (word == "(") - (word == ")")
        return self._tokens[start : self._at - 1]

    def within(self) -> Cursor:
        """A cursor over the tokens that ``inside`` returns."""
        before = self.passed
        return Cursor(self.text, self.inside(), before)

    def end(self) -> None:
        """Refuse any tokens that are left."""
        if self.remaining():
            raise self.unexpected()

    def unexpected(self, token: Token | None = None) -> WireError:
        """The syntax error for this position, or for the given token."""
        if token is None and self._at < len(self._tokens):
            token = self._tokens[self._at]
        if token is None:
            return WireError(SYNTAX, "syntax error at end of input", position=len(self.text) + 1)
        shown = token.text[:60]
        return WireError(SYNTAX, f'syntax error at or near "{shown}"', position=token.start + 1)
