"""Places in Python where an operator applies, by its syntax tree."""

from __future__ import annotations

import ast
import io
import tokenize
from bisect import bisect_left
from collections.abc import Iterator
from types import CodeType

from tools.mutation.sites import ARITHMETIC, COMPARISONS, Mutation, change_number

DROPPED = (ast.Assign, ast.AugAssign, ast.Delete, ast.Raise, ast.Break, ast.Continue)


def list_python_sites(path: str, source: str) -> Iterator[Mutation]:
    """Yield every mutation of a Python file."""
    lines = source.split("\n")
    found = [token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type == tokenize.OP]
    places = [token.start for token in found]

    def mutation(line: int, column: int, old: str, new: str, operator: str) -> Mutation:
        return Mutation(path, line, column, old, new, operator, lines[line - 1])

    def between(left: ast.expr, right: ast.expr, table: dict[str, str], operator: str) -> Iterator[Mutation]:
        for token in found[bisect_left(places, _end(lines, left)) : bisect_left(places, _start(lines, right))]:
            if token.string in table:
                yield mutation(*token.start, token.string, table[token.string], operator)

    for node, in_function in _nodes(ast.parse(source)):
        if isinstance(node, ast.Compare):
            for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
                yield from between(left, right, COMPARISONS, "comparison")
        elif isinstance(node, ast.BinOp) and not any(_text(side) for side in (node.left, node.right)):
            yield from between(node.left, node.right, ARITHMETIC, "arithmetic")
        elif isinstance(node, ast.AugAssign):
            yield from between(node.target, node.value, ARITHMETIC, "arithmetic")
        elif isinstance(node, ast.Constant):
            line, column = _start(lines, node)
            old = lines[line - 1][column : _end(lines, node)[1]]
            new = str(not node.value) if isinstance(node.value, bool) else change_number(old)
            if new is not None and isinstance(node.value, (bool, int, float)):
                yield mutation(line, column, old, new, "constant")
        dropped = isinstance(node, DROPPED) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        if in_function and dropped and node.lineno == node.end_lineno:
            line, column = _start(lines, node)
            yield mutation(line, column, lines[line - 1][column : _end(lines, node)[1]], "pass", "dropped statement")


def _nodes(tree: ast.AST, in_function: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Nodes that can be mutated, and whether they stand in a function; no strings, annotations, decorators, assertions."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(node, (ast.JoinedStr, ast.Assert)):
                continue
            if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == "__all__" for one in node.targets):
                continue
            yield node, in_function
            yield from _nodes(node, in_function or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))


def _text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _column(lines: list[str], line: int, column: int) -> int:
    """The tree counts bytes, lines are text."""
    return len(lines[line - 1].encode()[:column].decode())


def _start(lines: list[str], node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, _column(lines, node.lineno, node.col_offset)


def _end(lines: list[str], node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno, _column(lines, node.end_lineno, node.end_col_offset)


def is_same_code(before: str, after: str) -> bool:
    """Whether two sources compile to the same instructions and constants."""
    return _code(compile(before, "same", "exec")) == _code(compile(after, "same", "exec"))


def _code(code: CodeType) -> tuple:
    constants = tuple(_code(one) if isinstance(one, CodeType) else (type(one), repr(one)) for one in code.co_consts)
    return code.co_code, constants, code.co_names, code.co_varnames


def find_function(source: str, line: int) -> int | None:
    """Find the first line (decorators included) of the innermost function that a line's code belongs to; None: the module's.

    A default argument belongs to the function around, and so does a decorator.
    """
    best = None
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.body[0].lineno <= line <= node.end_lineno:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            best = first if best is None else max(best, first)
    return best
