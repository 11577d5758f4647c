"""The layers of the package: imports one way, no circle; and the owners of differences between kinds and stacks.

Imports count wherever they stand: at the top of a module, in a function, and for type checking only (a circle of types is
one too).
"""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

LAYERS = (
    ("errors", "version"),
    ("utils",),
    ("traces",),
    ("scenarios",),
    ("plants",),
    ("simulation",),
    ("controllers",),  # the protocol; tasks bring their own
    ("rewards",),
    ("tasks",),
    ("envs", "wrappers"),
    ("evaluation",),
    ("integrations", "validation"),
    ("training", "zoo", "leaderboard"),
    ("pages",),
    ("host",),  # plays trained agents too
    ("cli",),
    ("__main__",),
)
"""Lowest first. A module imports its own layer and lower ones. The package's own page (`netbuf_gym/__init__.py`) offers what
users need and is imported by none of them."""

LEARNERS = ("torch", "hydra", "omegaconf", "optuna", "wandb", "stable_baselines3", "sb3_contrib", "tensorboard", "matplotlib")
"""Libraries that are only there with the extras; no layer below training imports them at import."""
CORE = "netbuf_gym._core"  # built, and below everything
APART = tuple(f"netbuf_gym.{name}." for name in ("integrations", "training", "zoo", "leaderboard", "pages"))
"""Packages for those who have a learner."""


def files(*endings):
    """Code of the tree, tests and tools included: what git tracks, or would."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:  # an unpacked archive
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if not {".venv", "build", "runs"} & set(path.parts)]
    else:
        names = listed.stdout.splitlines()
    return sorted({name for name in names if name.endswith(endings) and (ROOT / name).is_file()})


# ---- imports


def modules():
    """Paths of all modules by name."""
    paths = (ROOT / "netbuf_gym").rglob("*.py")
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imports(name, path, known):
    """The modules of ours that a module imports, with the lines; `from package import name` means a module if there is one."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            wanted = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            source = ".".join(part for part in (base, node.module) if part)
            full = {f"{source}.{one.name}" for one in node.names} - {CORE}
            wanted = [one if one in known else source for one in full]
        else:
            continue
        for one in wanted:
            if one in known and one != name:
                yield one, node.lineno


@cache
def graph():
    known = modules()
    return {name: dict(imports(name, path, known)) for name, path in known.items()}


def circles(edges):
    """Strongly connected sets of more than one module (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(name):
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in edges[name]:
            if other not in number:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], number[other])
        if low[name] == number[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for name in edges:
        if name not in number:
            visit(name)
    return found


def test_circles_are_found():
    assert circles({"a": ["b"], "b": ["c"], "c": []}) == []
    assert circles({"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": []}) == [["a", "b", "c"]]


@pytest.mark.slow
def test_no_import_circle():
    assert circles(graph()) == []


@pytest.mark.slow
def test_imports_point_one_way():
    level = {f"netbuf_gym.{name}": number for number, layer in enumerate(LAYERS) for name in layer}

    def of(name):
        return ".".join(name.split(".")[:2])

    edges = graph()
    unplaced = {of(name) for name in edges} - level.keys() - {"netbuf_gym"}
    assert unplaced == set(), "say in LAYERS where they belong"
    wrong = [
        f"{modules()[name].relative_to(ROOT)}:{line} imports {other}"
        for name, found in edges.items()
        for other, line in found.items()
        if name != "netbuf_gym" and (other == "netbuf_gym" or level[of(other)] > level[of(name)])
    ]
    assert wrong == []


def test_nothing_that_is_installed_imports_studies():
    found = []
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            wanted = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            wanted += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found += [f"{name}:{node.lineno}" for one in wanted if one.partition(".")[0] == "studies"]
    assert found == []


@pytest.mark.slow
def test_nothing_below_training_imports_a_learner():
    optional = ("pettingzoo", "matplotlib", *LEARNERS)
    code = (
        "import pkgutil, sys, importlib, netbuf_gym\n"
        "for one in pkgutil.walk_packages(netbuf_gym.__path__, 'netbuf_gym.'):\n"
        f"    if not one.name.startswith({APART!r}) and not one.name.endswith('__main__'):\n"
        "        try:\n"
        "            importlib.import_module(one.name)\n"
        "        except ImportError as error:\n"
        f"            if (error.name or '').partition('.')[0] not in {optional!r}: raise\n"
        f"print(*sorted({{name.partition('.')[0] for name in sys.modules}} & set({LEARNERS!r})))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


# ---- differences

OWNED = {
    r"cpp/src/stack\.cc: const StackProfile& stack_profile\(": "the stack's profile is found here",
    r"cpp/(src|include/netbuf)/(receiver|sender|path|flow|packet)\w*\.(cc|h): .*\bkind [!=]= k[A-Z]": (
        "kinds of packets are the protocol, between those that send, carry and receive them"
    ),
    r"cpp/src/parameter\.cc: .*Parameter::Kind::": "which values a parameter takes, where they are checked",
    r"cpp/src/kernel/btf\.cc: .*\bkind\(\)": "kinds of types are BTF's, where it is read",
    r"cpp/src/live/receiver_meter\.cc: .*\bkind == k[A-Z]": "kinds of options are TCP's, where headers are read",
    r"netbuf_gym/plants/linux/(netlink|bpf/objects|proxy/socks)\.py: .*\bkind\b": (
        "kinds are those of netlink's messages, of ELF's sections, of SOCKS5's addresses, where they are read"
    ),
    r"netbuf_gym/plants/linux/setup\.py: .*\bstack != ": "a kernel has one stack",
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
    product = [name for name in files(".py", ".cc", ".h") if not name.startswith(("tests/", "cpp/tests/", "benchmarks/"))]
    found = {(name, number, line) for name in product for number, line in asks(name)}
    assert found, "the patterns see nothing"
    assert [f"{name}:{number}: {line}" for name, number, line in sorted(found) if not owned(name, line)] == []


@pytest.mark.slow
@pytest.mark.parametrize("pattern", OWNED)
def test_what_is_said_to_own_a_difference_does(pattern):
    lines = [f"{name}: {line}" for name in files(".py", ".cc", ".h") for _, line in asks(name)]
    assert any(re.match(pattern, line) for line in lines), "no such line any more: take it out of OWNED"


def test_questions_are_found():
    python = "a.kind == B\nx = 1 if self.kind_ != 'a' else 2\nstack in ('a', 'b')\n"
    python += "kind in REGISTRY\nnp.dtype(d).kind == 'f'\nkind is None\n"
    assert sorted(set(python_asks(ast.parse(python)))) == [1, 2, 3]
    for line in ("if (kind_ == Kind::flow)", "b.kind() == x", "Stack::ns3 != s", "s == Stack::ns3", "switch (config.stack) {"):
        assert CPP_ASKS.search(line), line
    for line in ("Stack stack = Stack::linux_kernel;", "kinds == 3", "make(kind, 1)"):
        assert not CPP_ASKS.search(line), line
