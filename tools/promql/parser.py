"""Text -> tree. Precedence from loose to tight: `and`, comparison, sum, product."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
AGGREGATES: Final = ("sum", "max", "min")
FUNCTIONS: Final = (
    "rate", "increase", "changes", "time", "histogram_quantile", "quantile_over_time",
)  # fmt: skip
_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<span>\d+(?:ms|[smhdw])(?:\d+(?:ms|[smhdw]))*)(?![\w.])
  | (?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)
  | (?P<word>[a-zA-Z_][a-zA-Z0-9_]*)
  | (?P<sign>==|!=|>=|<=|=~|!~|[-+*/><=(){}\[\],:])
    )""",
    re.VERBOSE,
)
LEVELS: Final = (("and",), ("==", "!=", ">", "<", ">=", "<="), ("+", "-"), ("*", "/"))


class QueryError(ValueError):
    """A query that cannot be read."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written."""

    value: float


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on a label."""

    label: str
    sign: str
    value: str

    def holds(self, value: str) -> bool:
        """Whether a label of this value fits."""
        if self.sign in ("=", "!="):
            return (value == self.value) == (self.sign == "=")
        return bool(re.fullmatch(self.value, value)) == (self.sign == "=~")


@dataclass(frozen=True, slots=True)
class Selector:
    """Series; with a span, all their samples within it."""

    name: str
    matchers: tuple[Matcher, ...] = ()
    span: float = 0.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Subquery:
    """An expression at every step of a span."""

    inner: Expression
    span: float
    step: float


@dataclass(frozen=True, slots=True)
class Call:
    """A function of its arguments."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Series put together by some of their labels."""

    function: str
    by: tuple[str, ...]
    inner: Expression


@dataclass(frozen=True, slots=True)
class Operation:
    """Two sides and what is between; `on` are the labels by which `and` compares."""

    sign: str
    left: Expression
    right: Expression
    on: tuple[str, ...] | None = None


Expression = Number | Selector | Subquery | Call | Aggregate | Operation


def parse(text: str) -> Expression:
    """The tree of a query."""
    reader = _Reader(text)
    found = reader.operation(0)
    reader.end()
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise QueryError(f"{text!r}: {text[at : at + 10]!r} is not understood")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self._at = 0

    def operation(self, level: int) -> Expression:
        """Everything that binds at least as tightly."""
        if level == len(LEVELS):
            return self._with_suffix(self._value())
        left = self.operation(level + 1)
        while self._peek() in LEVELS[level]:
            sign, on = self._next()[1], None
            if self._peek() == "on":
                self._next()
                on = self._names()
            left = Operation(sign, left, self.operation(level + 1), on)
        return left

    def end(self) -> None:
        """Nothing may be left."""
        if self._at < len(self._tokens):
            raise self._error("its end")

    def _value(self) -> Expression:
        kind, word = self._next()
        if kind == "number":
            return Number(float(word))
        if word == "(":
            inner = self.operation(0)
            self._expect(")")
            return inner
        if word in AGGREGATES:
            return self._aggregate(word)
        if kind == "word" and self._peek() == "(":
            if word not in FUNCTIONS:
                raise QueryError(f"{self._text!r}: the function {word} is not known here")
            return Call(word, self._arguments())
        if kind == "word":
            return Selector(word, self._matchers() if self._peek() == "{" else ())
        self._at -= 1
        raise self._error("a value")

    def _aggregate(self, function: str) -> Aggregate:
        by: tuple[str, ...] = ()
        if self._peek() == "by":
            self._next()
            by = self._names()
        (inner,) = self._arguments()
        return Aggregate(function, by, inner)

    def _with_suffix(self, value: Expression) -> Expression:
        if self._peek() == "[":
            self._next()
            span = self._span()
            if self._peek() == ":":
                self._next()
                value = Subquery(value, span, self._span())
            elif isinstance(value, Selector):
                value = Selector(value.name, value.matchers, span)
            else:
                raise self._error("a step after ':', as only series have samples")
            self._expect("]")
        if self._peek() == "offset":
            self._next()
            if not isinstance(value, Selector):
                raise self._error("series before `offset`")
            value = Selector(value.name, value.matchers, value.span, self._span())
        return value

    def _arguments(self) -> tuple[Expression, ...]:
        self._expect("(")
        found: list[Expression] = []
        while self._peek() != ")":
            found.append(self.operation(0))
            if self._peek() == ",":
                self._next()
        self._expect(")")
        return tuple(found)

    def _matchers(self) -> tuple[Matcher, ...]:
        self._expect("{")
        found: list[Matcher] = []
        while self._peek() != "}":
            label, sign, (kind, value) = self._next()[1], self._next()[1], self._next()
            if sign not in ("=", "!=", "=~", "!~") or kind != "text":
                raise self._error('a condition such as label="value"')
            found.append(Matcher(label, sign, value[1:-1]))
            if self._peek() == ",":
                self._next()
        self._expect("}")
        return tuple(found)

    def _names(self) -> tuple[str, ...]:
        self._expect("(")
        found = []
        while self._peek() != ")":
            found.append(self._next()[1])
            if self._peek() == ",":
                self._next()
        self._expect(")")
        return tuple(found)

    def _span(self) -> float:
        kind, text = self._next()
        if kind != "span":
            self._at -= 1
            raise self._error("a time such as 5m")
        return sum(float(n) * SECONDS[unit] for n, unit in re.findall(r"(\d+)(ms|[smhdw])", text))

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise QueryError(f"{self._text!r} ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, sign: str) -> None:
        if self._peek() != sign:
            raise self._error(repr(sign))
        self._at += 1

    def _error(self, wanted: str) -> QueryError:
        return QueryError(f"{self._text!r}: expected {wanted} before {self._peek()!r}")
