"""What tests say when they are skipped for what a machine lacks is known to what checks that it does."""

import importlib.util
from pathlib import Path

import pytest

from tests.helpers import machines

PATH = Path(__file__).resolve().parents[2] / ".ci" / "check_skips.py"
pytestmark = pytest.mark.skipif(not PATH.is_file(), reason="not in a checkout")


@pytest.fixture
def checks():
    spec = importlib.util.spec_from_file_location("check_skips", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def nothing(*_, **__):
    raise FileNotFoundError


LACKING = {
    "needs_live_worlds": [("missing", lambda: "no /dev/net/tun")],
    "needs_root": [("ROOT", False)],
    "needs_shadowsocks": [("processes.find_program", nothing)],
    "needs_bpf": [
        ("missing", str),
        ("system.may_register_bpf", lambda: True),
        ("struct_ops.explain_unavailable", lambda: "no BTF"),
    ],
}
PROBES = ("has_live_worlds", "has_kernel_windows", "has_user_namespaces", "has_program", "has_linux")


def reason(what, *words):
    with pytest.raises(pytest.skip.Exception) as skipped:
        getattr(machines, what)(*words)
    return str(skipped.value)


@pytest.mark.parametrize("what", LACKING)
def test_a_skip_is_allowed_where_the_machine_lacks_it(checks, monkeypatch, what):
    for place, value in LACKING[what]:
        monkeypatch.setattr(f"{machines.__name__}.{place}", value)
    said = reason(what)
    for there in (False, True):
        for probe in PROBES:
            monkeypatch.setattr(checks, probe, lambda *_, there=there: there)
        monkeypatch.setattr(checks.os, "geteuid", lambda there=there: 0 if there else 1000)
        assert checks.allowed(said) is not there, said


def test_programs_and_kernels(checks, monkeypatch):
    monkeypatch.setattr(machines.shutil, "which", lambda name, **_: None)
    assert checks.allowed(reason("needs_program", "nsenter")) and checks.allowed(reason("needs_user_namespaces"))
    assert checks.allowed(reason("needs_linux", 99, 1)) and not checks.has_linux("99.0") and checks.has_linux("2.6")


def test_other_reasons_are_not_allowed(checks):
    assert not checks.allowed("it was too slow") and not checks.allowed("a world broke: no live worlds here")


def test_the_reason_of_a_module_that_was_skipped_as_a_whole_is_in_its_text(checks, tmp_path):
    report = tmp_path / "report.xml"
    text = "(&apos;test_any.py&apos;, 9, &quot;Skipped: could not import &apos;{}&apos;: No module&quot;)"
    for module, code in (("no_such_module", 0), ("json", 1)):
        skip = f'<skipped type="pytest.skip" message="collection skipped">{text.format(module)}</skipped>'
        report.write_text(f'<testsuite><testcase classname="" name="test_any">{skip}</testcase></testsuite>')
        assert checks.main([str(report)]) == code
