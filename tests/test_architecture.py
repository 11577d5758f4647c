"""Where things stand: sizes of files, lines and classes, no import circle, imports one way by layer, differences in one place.

Imports count wherever they stand: at the top of a module, in a function, and for type checking only (a circle of types is
one too). `zoo/` and `conf/` count as `netbuf_gym.zoo` and `netbuf_gym.conf`, as they are installed.
"""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAX_PUBLIC = 40
MAX_COLUMNS = 120  # of C and C++; of Python, Ruff's

PACKAGES = {"netbuf_gym": "netbuf_gym", "netbuf_gym.zoo": "zoo", "netbuf_gym.conf": "conf"}

LAYERS = (
    ("version", "errors", "adding", "described", "exclusive", "extensions", "nearest", "overrides", "arguments", "checks",
     "files", "checkout", "progress", "stats", "tables", "sections", "plots", "executors", "isolated", "scripts"),
    ("traces",),
    ("scenarios",),
    ("results", "result_parts", "result_plots", "result_tables", "flow_results", "traffic_results", "udp_results",
     "video_results"),
    ("plants", "running", "simulation", "worlds"),
    ("contenders",),  # the protocol; tasks bring their own
    ("rewards", "tasks"),
    ("engine", "rendering", "registration", "page_blocks"),
    ("wrappers",),
    ("env", "vector", "multiagent"),
    ("rollout", "baselines"),
    ("integrations", "validate", "suites", "pages"),
    ("conf", "zoo"),
    ("live",),  # plays trained agents too
    ("commands",),
    ("cli",),
    ("__main__", "completion"),
)
"""Lowest first. A module imports its own layer and lower ones. The package's own page (`netbuf_gym/__init__.py`) offers what
users need and is imported by none of them."""

LEARNERS = ("torch", "hydra", "omegaconf", "optuna", "wandb", "stable_baselines3", "sb3_contrib", "tensorboard", "matplotlib")
"""What is only there with the extras, so that nothing below zoo imports it at import."""
CORE = "netbuf_gym._core"  # built, and below everything
APART = ("netbuf_gym.zoo", "netbuf_gym.conf", "netbuf_gym.integrations.")  # bridges to learners, imported by those who have one


def files(*endings):
    """Code of the tree, tests and tools included: what git tracks, or would."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:  # an unpacked archive
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if not {".venv", "build", "runs"} & set(path.parts)]
    else:
        names = listed.stdout.splitlines()
    return sorted({name for name in names if name.endswith(endings) and (ROOT / name).is_file()})


# ---- lines


def cpp_lines():
    """(file, number, line) of all C and C++: sources, and the blocks of pages."""
    for name in files(".c", ".cc", ".h", ".md"):
        inside = not name.endswith(".md")
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            if name.endswith(".md") and line.lstrip().startswith("```"):
                inside = line.strip() in ("```c", "```cpp")
            elif inside:
                yield name, number, line


def test_no_line_of_cpp_is_long():
    lines = list(cpp_lines())
    assert {name.rpartition(".")[2] for name, _, _ in lines} == {"c", "cc", "h", "md"}
    assert [f"{name}:{number}: {len(line)} columns" for name, number, line in lines if len(line) > MAX_COLUMNS] == []


def python_members(tree):
    """Public names of each class: attributes and methods of its body, and what `__init__` puts into `self`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        names = set()
        for part in node.body:
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.add(part.name)
            targets = part.targets if isinstance(part, ast.Assign) else [part.target] if isinstance(part, ast.AnnAssign) else []
            for target in targets:
                names |= {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
            if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                own = part.args.args[0].arg
                for one in ast.walk(part):
                    stored = isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
                    if stored and isinstance(one.value, ast.Name) and one.value.id == own:
                        names.add(one.attr)
        yield node.name, {name for name in names if not name.startswith("_")}


CPP_SKIP = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<!\d)'(?:[^'\\\n]|\\.)'|^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*""",
    re.S | re.M,
)
CPP_TOKEN = re.compile(r"[A-Za-z_]\w*|::|->|<=>|&&|[-+*/%&|^<>=!]=|[^\s\w]|\d[\w.']*")
CPP_CLASS = re.compile(r"(?:class|struct|union)$")


def cpp_members(source):
    """Public members of each class and struct: functions by name (overloads are one), fields, nested types, no constructors."""
    tokens = CPP_TOKEN.findall(CPP_SKIP.sub(" ", source))
    stack = []  # of open braces: [class name or None, public now, members, the statement so far]
    statement = []
    for i, token in enumerate(tokens):
        if token == "{":
            head = _without_templates(statement)
            kind = next((word for word in head if CPP_CLASS.match(word)), None)
            if kind and "(" not in head and "=" not in head and "enum" not in head:
                if stack:
                    _member(stack[-1], head)
                name = next((word for word in head[head.index(kind) + 1 :] if re.match(r"[A-Za-z_]", word)), "(unnamed)")
                stack.append([name, kind != "class", set(), []])
            else:
                stack.append([None, False, set(), statement])
            statement = []
        elif token == "}":
            name, _, members, held = stack.pop()
            if name is not None:
                yield name, members
                statement = ["}"]
            else:  # a body ends its member; a list of values or an enumeration goes on to its `;`
                statement = held
                if i + 1 < len(tokens) and tokens[i + 1] not in (";", ",", "=", ")", "{"):
                    if stack:
                        _member(stack[-1], statement)
                    statement = []
        elif token == ";":
            if stack:
                _member(stack[-1], statement)
            statement = []
        elif token == ":" and statement and statement[-1] in ("public", "private", "protected"):
            if stack and stack[-1][0] is not None:
                stack[-1][1] = statement[-1] == "public"
            statement = []
        else:
            statement.append(token)


def _without_templates(words):
    """The words without template parameter lists in front."""
    while words[:1] == ["template"]:
        depth, end = 0, 1
        while end < len(words):
            depth += (words[end] == "<") - (words[end] == ">")
            end += 1
            if depth == 0:
                break
        words = words[end:]
    return words


def _member(scope, statement):
    """Adds the names that a statement declares to an open class."""
    name, public, members, _ = scope
    words = _without_templates(statement)
    if name is None or not public or not words or words[0] in ("friend", "using", "static_assert", "}"):
        return
    if "enum" in words or CPP_CLASS.match(words[0]):
        found = [word for word in words if re.match(r"[A-Za-z_]", word) and word not in ("enum", "class", "struct", "union")]
        members.update(found[:1])
        return
    if words[-1].isidentifier() and words.count("(") == words.count(")") and words[-2:-1] == [">"]:
        members.add(words[-1])  # a field of a templated type
        return
    if "(" in words and "=" not in words[: words.index("(")]:
        before = words[: words.index("(")]
        at = before.index("operator") if "operator" in before else None
        declared = "".join(before[at:]) if at is not None else before[-1]
        if declared != name and not declared.startswith("~") and "~" not in before:
            members.add(declared)
        return
    depth, expecting, last = 0, True, None
    for word in [*words, ","]:  # `int64_t a = 0, b{1};`
        if depth == 0 and word in (",", "=", "{", "[", ":"):
            if expecting and last:
                members.add(last)
            expecting = word == ","
            last = None
        depth += (word in "<([{") - (word in ">)]}") if len(word) == 1 else 0
        if re.match(r"[A-Za-z_]", word) and depth == 0:
            last = word


@pytest.mark.slow
def test_no_class_is_wide():
    wide = {}
    for name in files(".py", ".h", ".cc"):
        source = (ROOT / name).read_text()
        for owner, members in python_members(ast.parse(source)) if name.endswith(".py") else cpp_members(source):
            if len(members) > MAX_PUBLIC:
                wide[f"{name}: {owner}"] = len(members)
    assert wide == {}


def test_members_are_counted():
    python = ast.parse(
        "class A:\n x: int = 1\n _y = 2\n def __init__(self):\n  self.a, self._b = 1, 2\n  self.c: int = 3\n"
        " def run(self): self.d = 1\n class Inner: pass\n"
    )
    assert dict(python_members(python))["A"] == {"x", "a", "c", "run", "Inner"}
    cpp = """
      template <class T> class A : public B<T> {
        int hidden_;
       public:
        A(); ~A(); A(const A&) = delete;
        virtual void run(Time until) { while (x) { y(); } }  // int not_me;
        bool operator()(int a) const;
        std::map<int, int> table() const { return {}; }
        Time next = kNever, last{0}, third[3] = {1, 2};
        enum class Mode : uint8_t { on, off };
        struct Inner { int a, b; void f(); };
        std::function<void(int)> hook;
        using Alias = int;
        void run();
       private:
        void secret();
      };
      struct P { uint32_t x = 1; Foo foo() const { return Foo{x}; } };
      enum class E { one, two };"""
    found = dict(cpp_members(cpp))
    assert found["A"] == {"run", "operator", "table", "next", "last", "third", "Mode", "Inner", "hook"}
    assert found["Inner"] == {"a", "b", "f"} and found["P"] == {"x", "foo"} and set(found) == {"A", "Inner", "P"}


# ---- imports


def modules():
    """Paths of all modules by name."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in (ROOT / folder).rglob("*.py"):
            name = ".".join([package, *path.relative_to(ROOT / folder).with_suffix("").parts])
            found[name.removesuffix(".__init__")] = path
    return found


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
def test_nothing_below_zoo_imports_a_learner():
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
