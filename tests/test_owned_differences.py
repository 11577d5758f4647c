"""Only the owner of a difference between kinds, or between stacks, asks which of them it has; everything else asks it."""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

OWNED = {
    r"cpp/src/stack\.cc: const StackProfile& stack_profile\(": "the stack's profile is found here",
    r"cpp/(src|include/netbuf)/(receiver|sender|path|flow|packet)\w*\.(cc|h): .*\bkind [!=]= k[A-Z]": (
        "kinds of packets are the protocol, between those that send, carry and receive them"
    ),
    r"cpp/src/parameter\.cc: .*Parameter::Kind::": "which values a parameter takes, where they are checked",
    r"cpp/src/kernel/btf\.cc: .*\bkind\(\)": "kinds of types are BTF's, where it is read",
    r"cpp/src/live/receiver_meter\.cc: .*\bkind == k[A-Z]": "kinds of options are TCP's, where headers are read",
    r"cpp/policy/policy\.h: .*->kind\b": "kinds of networks, where they are run",
    r"netbuf_gym/zoo/integer_policy\.py: .*\bkind\b": "kinds of layers, where they are quantised",
    r"netbuf_gym/plants/linux/(netlink|bpf/objects|proxy/socks)\.py: .*\bkind\b": (
        "kinds are those of netlink's messages, of ELF's sections, of SOCKS5's addresses, where they are read"
    ),
    r"netbuf_gym/utils/parameters\.py: .*\bkind\b": "kinds of values, where they are checked and read",
    r"netbuf_gym/scenarios/captures\.py: .*\bkind\b": "kinds of blocks are pcapng's, where they are read",
    r"netbuf_gym/plants/linux/setup\.py: .*\bstack != ": "a kernel has one stack",
    r"netbuf_gym/scenarios/types\.py: .*\bstack != ": "settings of Linux, where fields are checked",
    r"netbuf_gym/simulation/results/packets\.py: .*\b(kind|stack)\b": "kinds of packets and options, where headers are written",
    r"studies/validation/kernel_timeouts\.py: .*\bkind\b": "kinds of packets are TCP's, where they are read off a wire",
    r"netbuf_gym/training/config_reference\.py: .*\bkind in \(int": "kinds are Python's types, where they are described",
}
"""Places that own a difference (file: line, as a pattern), and why it is theirs."""

ASKED = ("kind", "stack")
PYTHONS_OWN = re.compile(r"\b(?:[A-Z]+_)?(?:KEYWORD|POSITIONAL)(?:_[A-Z]+)*\b|^None$|^object$")  # of parameters, columns
CPP_SKIP = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<!\d)'(?:[^'\\\n]|\\.)'|^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*""",
    re.S | re.M,
)
CPP_ASKS = re.compile(
    r"\b(?:kind|stack)_?(?:\(\))?\s*[!=]=|[!=]=\s*(?:\w+::)*(?:Stack|Kind)::|\b(?:Stack|Kind)::\w+\s*[!=]="
    r"|switch\s*\([^)]*\b(?:kind|stack)_?(?:\(\))?\)"
)


def files(*endings):
    """Code of the tree, tests and tools included: what git tracks, or would."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:  # an unpacked archive
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if not {".venv", "build", "runs"} & set(path.parts)]
    else:
        names = listed.stdout.splitlines()
    return sorted({name for name in names if name.endswith(endings) and (ROOT / name).is_file()})


def python_asks(tree):
    """Lines that compare a kind or a stack with something spelled out."""

    def asked(node):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
        of = ast.unparse(node.value) if isinstance(node, ast.Attribute) else ""
        return name is not None and name.strip("_") in ASKED and "dtype" not in of  # numpy's kinds are its own

    for node in ast.walk(tree):
        if isinstance(node, ast.Match) and asked(node.subject):
            yield node.lineno
        if not isinstance(node, ast.Compare):
            continue
        for left, how, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            if isinstance(how, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
                other = right if asked(left) else left
                if (asked(left) or asked(right)) and not PYTHONS_OWN.search(ast.unparse(other)):
                    yield node.lineno
            elif asked(left) and isinstance(right, (ast.Tuple, ast.List, ast.Set)):  # not: in a registry
                if not PYTHONS_OWN.search(ast.unparse(right)):
                    yield node.lineno


@cache
def asks(name):
    """The lines of a file that ask which kind or stack it is."""
    source = (ROOT / name).read_text()
    lines = source.splitlines()
    if name.endswith(".py"):
        return [(number, lines[number - 1].strip()) for number in sorted(set(python_asks(ast.parse(source))))]
    bare = CPP_SKIP.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source).splitlines()
    return [(number, lines[number - 1].strip()) for number, line in enumerate(bare, 1) if CPP_ASKS.search(line)]


def owned(name, line):
    return any(re.match(pattern, f"{name}: {line}") for pattern in OWNED)


@pytest.mark.slow
def test_only_the_owner_of_a_difference_asks_for_it():
    apart = ("tests/", "cpp/tests/", "benchmarks/", "tools/")
    product = [name for name in files(".py", ".cc", ".h") if not name.startswith(apart)]
    found = {(name, number, line) for name in product for number, line in asks(name)}
    assert found, "the patterns see nothing"
    assert [f"{name}:{number}: {line}" for name, number, line in sorted(found) if not owned(name, line)] == []


@pytest.mark.slow
@pytest.mark.parametrize("pattern", OWNED)
def test_what_is_said_to_own_a_difference_does(pattern):
    lines = [f"{name}: {line}" for name in files(".py", ".cc", ".h") for _, line in asks(name)]
    assert any(re.match(pattern, line) for line in lines), "no such line any more: take it out of OWNED"
