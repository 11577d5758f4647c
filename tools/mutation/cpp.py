"""Places in C++ where an operator applies: a small tokenizer, and which scopes are bodies of functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.mutation.sites import ARITHMETIC, COMPARISONS, Mutation, change_number

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
      | (?P<string>(?:u8|[uUL])?R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+')
      | (?P<number>0[xX][0-9a-fA-F']+[uUlLzZ]*|(?:\d[\d']*\.?[\d']*|\.\d+)(?:[eE][+-]?\d+)?[uUlLzZfF]*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<op><=>|->\*?|\+\+|--|<<=|>>=|<<|[-+*/%&|^<>=!]=|&&|\|\||::|\.\.\.|[-+*/%&|^<>=!~?:;,.(){}\[\]])
    """,
    re.X | re.M | re.S,
)
NO_STATEMENT = set(
    """alignas auto bool case catch char class const constexpr consteval default delete do double else enum extern explicit
    float for friend goto if inline int int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t namespace new operator private
    protected public register return short signed static static_assert struct switch template thread_local try typedef typename
    union unsigned using virtual void volatile while""".split()
)


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int


def tokens(source: str) -> list[Token]:
    """Code only: no comments, no white space; directives and strings are tokens of their own kind."""
    found, at = [], 0
    while at < len(source):
        match = TOKEN.match(source, at)
        if not match:
            raise ValueError(f"no C++ token: {source[at : at + 40]!r}")
        kind = match.lastgroup if match.lastgroup != "tag" else "string"
        if kind != "skip":
            found.append(Token(kind, match[0], at))
        at = match.end()
    return found


def _scopes(code: list[Token]) -> list[str]:
    """For each token what it stands in: "body" of a function, "type" (or namespace), "list" of values, "" outside."""
    inside, stack, head = [], [], []
    for i, token in enumerate(code):
        if token.text == "}" and stack:
            stack.pop()
            head = []
        inside.append(stack[-1] if stack else "")
        if token.text == "{":
            stack.append("type" if _opens_type(head) else "list" if _opens_list(code[i - 1] if i else None) else "body")
            head = []
        elif token.text == ";":
            head = []
        else:
            head.append(token.text)
    return inside


def _neutral(code: list[Token], at: int, inside: list[str]) -> bool:
    """Whether a member of a class is declared as 0, -1 or false: constructors and resets set it before it counts."""
    before = [token.text for token in code[max(at - 2, 0) : at]]
    value = code[at].text
    if inside[at] != "type" or code[at + 1].text not in (";", ",", "}"):
        return False
    if value in ("0", "0u", "0.0", "false"):
        return before[-1] in ("=", "{")
    return value == "1" and before == ["=", "-"]


def _opens_type(head: list[str]) -> bool:
    return any(word in head for word in ("class", "struct", "enum", "union", "namespace")) and "(" not in head


def _opens_list(before: Token | None) -> bool:
    """Whether a brace after this token begins a list of values."""
    if before is None or before.text in ("else", "do", "try", "const", "override", "final", "noexcept"):
        return False
    return before.kind == "name" or before.text in ("=", ",", "(", "return", "{", ">", "]")


def _closes_header(code: list[Token], close: int) -> bool:
    """Whether the `)` ends the header of an if, for or while."""
    depth = 0
    for i in range(close, -1, -1):
        depth += (code[i].text == ")") - (code[i].text == "(")
        if depth == 0:
            return i > 0 and code[i - 1].text in ("if", "for", "while", "constexpr")
    return False


def _statements(code: list[Token], inside: list[str]) -> Iterator[tuple[int, int]]:
    """First and last token of statements that can be dropped."""
    for i, token in enumerate(code):
        if inside[i] != "body" or token.kind in ("directive", "string", "number"):
            continue
        before = code[i - 1].text if i else ""
        if not (before in (";", "{", "}", "else", "do") or (before == ")" and _closes_header(code, i - 1))):
            continue
        if before == ";" and _within_for(code, i):
            continue
        end, depth = i, 0
        while end < len(code):
            text = code[end].text
            depth += (text in "([{") - (text in ")]}")
            if depth < 0 or (depth == 0 and text == ";"):
                break
            end += 1
        if end >= len(code) or code[end].text != ";" or end == i:
            continue
        words = code[i:end]
        if words[0].text in NO_STATEMENT and (words[0].text != "return" or len(words) > 1):
            continue
        if words[0].text in ("throw", "break", "continue", "return") or _acts(words):
            yield i, end


def _within_for(code: list[Token], at: int) -> bool:
    """Whether a `;` before `at` separates the parts of a for's header."""
    depth = 0
    for i in range(at - 1, max(at - 80, -1), -1):
        text = code[i].text
        depth += (text == ")") - (text == "(")
        if depth < 0:
            return True
        if text in "{}":
            return False
    return False


def _acts(words: list[Token]) -> bool:
    """A call, an assignment or an increment, not a declaration: no two names stand side by side at its beginning."""
    depth = 0
    for i, word in enumerate(words):
        if depth == 0 and i and word.kind == "name":
            if words[i - 1].kind == "name" or (i < 4 and words[i - 1].text in ("*", "&", ">") and words[0].kind == "name"):
                return False
        if depth == 0 and word.text in ("=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=", ">>="):
            return True
        if depth == 0 and word.text in ("++", "--"):
            return True
        depth += (word.text in "([{") - (word.text in ")]}")
    return len(words) > 2 and words[-1].text == ")"


def list_cpp_sites(path: str, source: str) -> Iterator[Mutation]:
    """Yield every mutation of a C++ file."""
    code = tokens(source)
    inside = _scopes(code)
    lines, starts = source.split("\n"), [0]
    for text in lines:
        starts.append(starts[-1] + len(text) + 1)

    def place(offset: int) -> tuple[int, int]:
        line = source.count("\n", 0, offset)
        return line, offset - starts[line]

    strings = {place(token.start)[0] for token in code if token.kind == "string"}
    asserted = {number for number, text in enumerate(lines) if "static_assert" in text}
    for i, token in enumerate(code):
        line, column = place(token.start)
        if token.kind in ("directive", "string") or line in asserted:
            continue

        def mutation(new: str, operator: str, old: str = token.text, line: int = line, column: int = column) -> Mutation:
            return Mutation(path, line + 1, column, old, new, operator, lines[line])

        if token.kind == "op" and 0 < i < len(code) - 1:
            end = column + len(token.text)
            spaced = lines[line][column - 1 : column] in (" ", "") and lines[line][end : end + 1] in (" ", "")
            binary = spaced and (code[i - 1].kind in ("name", "number") or code[i - 1].text in (")", "]"))
            if code[i - 1].text in ("operator", "template") or not binary:
                continue
            if token.text in COMPARISONS:
                yield mutation(COMPARISONS[token.text], "comparison")
            elif token.text in ARITHMETIC and line not in strings:
                yield mutation(ARITHMETIC[token.text], "arithmetic")
        elif token.kind == "number":
            new = change_number(token.text)
            pure = code[i - 1].text == "=" and code[i - 2].text in (")", "const", "noexcept")  # virtual
            if new is not None and not pure and not _neutral(code, i, inside):
                yield mutation(new, "constant")
        elif token.text in ("true", "false") and not _neutral(code, i, inside):
            yield mutation({"true": "false", "false": "true"}[token.text], "constant")
    for first, last in _statements(code, inside):
        line, column = place(code[first].start)
        end_line, end = place(code[last].start)
        if line == end_line:
            yield Mutation(path, line + 1, column, lines[line][column : end + 1], ";", "dropped statement", lines[line])
