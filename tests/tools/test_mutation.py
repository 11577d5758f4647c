"""The mutations themselves: where operators apply, that draws repeat, and that the fixed ones are still to be found."""

from dataclasses import replace
from itertools import islice

import pytest

from tools.mutation import __main__ as mutate
from tools.mutation.cpp import list_cpp_sites
from tools.mutation.python import is_same_code, list_python_sites
from tools.mutation.sites import OPERATORS, change_number, draw_mutations, find_fixed, list_pool

CPP = """#include <a.h>  // a < b
static_assert(sizeof(int) == 4);
struct Foo : Bar {
  Foo(int a);
  void run(int until);
  int size = 3, none = 0, no = -1;  /* x + y */ virtual void go() const = 0;
};
int f(const std::vector<int>& v, int n) {
  const int a = n * 2;
  Foo foo{1, 2};
  if (a <= n && v.size() != 0u) run(a < 1.5 ? "a + b" : name + "c");
  for (int i = 0; i < n; ++i) total += v[i];
  *out++ = -n;
  if (a == n)
    return n / 2;
  while (true) {
    break;
  }
  call(
      n);
  return a - n;
}
"""
PYTHON = '''"""One < two."""
import os
__all__ = ["f"]
LIMIT: int = 3


@dataclass(frozen=True)
class A:
    x: float = 0.5

    def f(self, a: Literal[1], b=2):
        """3 < 4"""
        assert a < b
        self.c = a + b * -1
        if a <= b != 0:
            raise ValueError(f"{a + 1} x" + "y")
        log("a" + "b")
        value = (a
                 - b)
        return a // b, *b, {**a}, True
'''


def changed(found):
    return {(one.operator, one.before, one.after) for one in found}


def test_places_in_cpp():
    found = list(list_cpp_sites("f.cc", CPP))
    by = {operator: sorted((one.line, one.old, one.new) for one in found if one.operator == operator) for operator in OPERATORS}
    assert by["comparison"] == [(11, "!=", "=="), (11, "<", "<="), (11, "<=", "<"), (12, "<", "<="), (14, "==", "!=")]
    assert by["arithmetic"] == [(9, "*", "/"), (12, "+=", "-="), (15, "/", "*"), (21, "-", "+")]
    assert by["constant"] == [
        (6, "3", "4"), (9, "2", "3"), (10, "1", "2"), (10, "2", "3"), (11, "0u", "1u"), (11, "1.5", "2.25"), (12, "0", "1"),
        (15, "2", "3"), (16, "true", "false"),
    ]  # fmt: skip
    assert [line for line, _, _ in by["dropped statement"]] == [11, 12, 13, 17]
    assert by["dropped statement"][1][1:] == ("total += v[i];", ";")


def test_places_in_python():
    found = list(list_python_sites("f.py", PYTHON))
    by = {operator: sorted((one.line, one.old, one.new) for one in found if one.operator == operator) for operator in OPERATORS}
    assert by["comparison"] == [(15, "!=", "=="), (15, "<=", "<")]
    assert by["arithmetic"] == [(14, "*", "/"), (14, "+", "-"), (19, "-", "+"), (20, "//", "*")]
    assert by["constant"] == [
        (4, "3", "4"), (9, "0.5", "0.75"), (11, "2", "3"), (14, "1", "2"), (15, "0", "1"), (20, "True", "False")
    ]  # fmt: skip
    assert [(line, new) for line, _, new in by["dropped statement"]] == [(14, "pass"), (16, "pass"), (17, "pass")]


def test_a_mutation_changes_its_line_only():
    for one in [*list_cpp_sites("f.cc", CPP), *list_python_sites("f.py", PYTHON)]:
        source = CPP if one.path == "f.cc" else PYTHON
        before, after = source.split("\n"), one.apply(source).split("\n")
        assert [i for i, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b] == [one.line]
        assert after[one.line - 1].strip() == one.after != one.before
    with pytest.raises(ValueError, match="not the line"):
        one.apply(source.replace("a // b", "a / b"))


@pytest.mark.parametrize(
    ("number", "other"),
    [("0", "1"), ("7u", "8u"), ("1'000", "1001"), ("0x1F", "32"), ("0.5", "0.75"), ("2e-3", "0.003"), ("j", None)],
)
def test_constants(number, other):
    assert change_number(number) == other


def test_draws_repeat_and_give_every_place_once():
    found = sorted([*list_cpp_sites("f.cc", CPP), *list_python_sites("f.py", PYTHON)])
    assert list(draw_mutations(found, 1)) == list(draw_mutations(found, 1)) != list(draw_mutations(found, 2))
    assert sorted(draw_mutations(found, 1)) == found
    places = {"comparison": 150, "arithmetic": 200, "constant": 900, "dropped statement": 400}
    many = [replace(found[0], operator=name, line=line) for name, count in places.items() for line in range(count)]
    first = [one.operator for one in islice(draw_mutations(many, 3), 400)]  # however many places an operator has
    assert all(70 < first.count(operator) < 130 for operator in OPERATORS)


def test_same_code_is_recognised():
    assert is_same_code("x = 1 + 2\n", "x = 3\n") and is_same_code("def f():\n  y = 1 < 2  # a\n", "def f():\n  y = 1 < 2\n")
    assert not is_same_code("def f(a):\n  return a < 2\n", "def f(a):\n  return a <= 2\n")
    assert not is_same_code("x = 1\n", "x = True\n")


def test_the_tree_has_a_pool_and_the_fixed_mutations():
    files = mutate.list_tracked()
    names = list_pool(mutate.ROOT, files)
    assert {name.split("/")[1] for name in names} >= {"src", "include", "tasks", "scenarios"}
    assert not any("bindings" in name for name in names)
    six = find_fixed(mutate.ROOT, names)
    assert len(six) == 6 and all(one.before != one.after for one in six)
    for one in six:
        one.apply((mutate.ROOT / one.path).read_text())


def test_a_fixed_mutation_that_is_gone_is_named(tmp_path):
    with pytest.raises(LookupError, match=r"loss rate without random losses.*nowhere"):
        find_fixed(tmp_path, [])
