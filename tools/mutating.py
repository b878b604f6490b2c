"""Small, deliberate mistakes in Python source: one changed comparison, number or statement each.

A mutant is a file's text with one place changed, found on the syntax tree and spliced into the
text, so that everything else stays as it was written. What cannot change behaviour (docstrings,
annotations, imports, decorators) is left alone. Running mutants is `mutants.py`'s business.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_BOUNDARY: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}  # fmt: skip
_SWAPPED = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
_PLAIN_CONDITIONS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)
Node = ast.expr | ast.stmt


@dataclass(frozen=True)
class Mutant:
    """One mistake. `before` and `after` are the changed lines, without their indentation."""

    file: str
    function: str
    kind: str
    line: int
    before: str
    after: str
    source: str

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """Who it is while lines move."""
        return (self.file, self.function, self.kind, self.before, self.after)


def mutants_of(source: str, file: str) -> list[Mutant]:
    """Every mistake this module knows how to make in a file, in the order of its lines."""
    found = []
    for function, node, kind, replacement in _changes(ast.parse(source), ""):
        changed = _spliced(source, node, replacement)
        line = node.lineno
        before, after = _lines(source, changed, line)
        if before != after:
            found.append(Mutant(file, function, kind, line, before, after, changed))
    return sorted(found, key=lambda mutant: mutant.line)


def _changes(tree: ast.AST, function: str) -> Iterator[tuple[str, Node, str, str]]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Import | ast.ImportFrom) or _is_text(child):
            continue
        inside = function
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            inside = f"{function}.{child.name}" if function else child.name
        if isinstance(child, ast.stmt):
            yield from ((inside, child, kind, text) for kind, text in _of_statement(child))
        if isinstance(child, ast.expr):
            yield from ((inside, child, kind, text) for kind, text in _of_expression(child))
        if not _is_sentinel(child):
            yield from _changes(_without_words(child), inside)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_sentinel(node: ast.AST) -> bool:
    """A negative number, which is changed as a whole."""
    return (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    )


def _without_words(node: ast.AST) -> ast.AST:
    """The node without what only people and type checkers read."""
    if isinstance(node, ast.FunctionDef):
        return ast.Module(body=node.body, type_ignores=[])
    if isinstance(node, ast.ClassDef):
        return ast.Module(body=node.body, type_ignores=[])
    if isinstance(node, ast.AnnAssign):
        return ast.Module(body=[], type_ignores=[]) if node.value is None else ast.Expr(node.value)
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return ast.Module(body=[], type_ignores=[])
    return node


def _of_statement(node: ast.stmt) -> Iterator[tuple[str, str]]:
    removable = isinstance(node, ast.AugAssign | ast.Continue | ast.Break) or (
        isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
    )
    if removable or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield "statement removed", "pass"
    if isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
        other = ast.AugAssign(node.target, _ARITHMETIC[type(node.op)](), node.value)
        yield "arithmetic", ast.unparse(other)
    if isinstance(node, ast.Return) and not isinstance(node.value, ast.Constant | None):
        yield "return value", "return 0"
    # Comparisons and what is joined or negated already are changed as expressions.
    if isinstance(node, ast.If | ast.While) and isinstance(node.test, _PLAIN_CONDITIONS):
        keyword, condition = type(node).__name__.lower(), ast.unparse(node.test)
        if condition != "TYPE_CHECKING":
            yield "condition negated", f"{keyword} not ({condition}):"


def _of_expression(node: ast.expr) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Compare(ops=[operator]):
            kinds = (("boundary", _BOUNDARY), ("comparison", _OPPOSITE))
            for kind, table in kinds:
                if type(operator) in table:
                    other = ast.Compare(node.left, [table[type(operator)]()], node.comparators)
                    yield kind, _in_parentheses(other)
        case ast.BoolOp():
            other_operator = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and, or", _in_parentheses(ast.BoolOp(other_operator, node.values))
        case ast.UnaryOp(op=ast.Not()):
            yield "not removed", _in_parentheses(node.operand)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            # Minus one means "none": minus two would, too.
            yield "constant", f"({1 - number})"
        case ast.UnaryOp(op=ast.USub()):
            yield "sign", _in_parentheses(node.operand)
        case ast.BinOp() if type(node.op) in _ARITHMETIC:
            other_sign = _ARITHMETIC[type(node.op)]()
            yield "arithmetic", _in_parentheses(ast.BinOp(node.left, other_sign, node.right))
        case ast.Constant(value=bool()):
            yield "constant", repr(not node.value)
        case ast.Constant(value=int() as number):
            yield "constant", f"({number} + 1)"
            yield "constant", f"({number} - 1)"
        case ast.Call():
            yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[tuple[str, str]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    if name in _SWAPPED:
        called = ast.unparse(node)
        yield "min, max", called.replace(f"{name}(", f"{_SWAPPED[name]}(", 1)
    elif len(node.args) == 2 and not any(isinstance(a, ast.Starred) for a in node.args):
        swapped = ast.Call(node.func, node.args[::-1], node.keywords)
        yield "arguments swapped", ast.unparse(swapped)


def _in_parentheses(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def _spliced(source: str, node: Node, replacement: str) -> str:
    """The source with the node's text replaced; of an `if` or `while` only its head."""
    lines = source.splitlines(keepends=True)
    at = sum(len(line.encode()) for line in lines[: node.lineno - 1]) + node.col_offset
    last, column = node.end_lineno, node.end_col_offset
    if isinstance(node, ast.If | ast.While):
        last, column = node.test.end_lineno, node.test.end_col_offset
        replacement = replacement.removesuffix(":")
        if source.encode()[at : at + 4] == b"elif":
            replacement = f"el{replacement}"
    assert last is not None
    assert column is not None
    end = sum(len(line.encode()) for line in lines[: last - 1]) + column
    raw = source.encode()
    return (raw[:at] + replacement.encode() + raw[end:]).decode()


def _lines(source: str, changed: str, line: int) -> tuple[str, str]:
    """The first line that differs, from where the change begins."""
    old, new = source.splitlines(), changed.splitlines()
    for number in range(line - 1, min(len(old), len(new))):
        if old[number] != new[number]:
            return old[number].strip(), new[number].strip()
    return "", ""


def compiles(source: str) -> bool:
    """Whether it is Python at all: a mistake must be one that only tests can find."""
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True
