"""`make release-check`: steps are run once a commit, whatever interrupts them, and their verdicts are kept."""

import importlib.util
import json
import subprocess
from pathlib import Path

import pytest

from netbuf_gym.errors import ConfigError

PATH = Path(__file__).resolve().parents[2] / ".ci" / "release_check.py"
pytestmark = pytest.mark.skipif(not PATH.is_file(), reason="not in a checkout")


def git(*words):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], check=True, capture_output=True)


@pytest.fixture
def check(tmp_path, monkeypatch):
    """The script, with three steps in a small repository; `taken` has those that were run, and `verdicts` says how they end."""
    spec = importlib.util.spec_from_file_location("release_check", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".gitignore").write_text("/build/\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    module.ROOT, module.LOGS = tmp_path, tmp_path / "build" / "release-check"
    module.STEPS = dict.fromkeys(("one", "two", "three"))
    module.taken, module.verdicts = [], {}

    def take(name):
        module.taken.append(name)
        verdict = module.verdicts.get(name, True)
        if isinstance(verdict, BaseException):
            raise verdict
        return verdict

    module.take = take
    return module


def verdicts(check):
    summary = json.loads((check.ROOT / check.SUMMARY).read_text())
    return summary["passed"], [step["verdict"] for step in summary["steps"].values()]


def test_what_fails_is_run_again_and_what_has_passed_is_not(check, capsys):
    check.verdicts["two"] = False
    assert check.main([]) == 1 and check.taken == ["one", "two", "three"]
    assert verdicts(check) == (False, ["passed", "failed", "passed"])
    check.verdicts.clear()
    assert check.main([]) == 0 and check.taken == ["one", "two", "three", "two"]
    assert verdicts(check)[0] and "[2/3] two: passed in 0 s" in capsys.readouterr().out
    assert check.main(["--anew", "one"]) == 0 and check.taken[4:] == ["one"]
    assert check.main(["--anew"]) == 0 and check.taken[5:] == ["one", "two", "three"]


def test_an_interrupted_check_goes_on_where_it_was(check):
    check.verdicts["two"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        check.main([])
    assert verdicts(check) == (False, ["passed", "not run", "not run"])
    check.verdicts.clear()
    assert check.main([]) == 0 and check.taken == ["one", "two", "two", "three"]


def test_a_verdict_is_of_its_commit(check):
    assert check.main([]) == 0
    git("add", ".")
    git("commit", "-q", "-m", "the summary, which is no other commit")
    assert check.main([]) == 0 and len(check.taken) == 3
    (check.ROOT / "more").write_text("")
    with pytest.raises(ConfigError, match=r"changes that are not committed: \?\? more; valid: a tree that is committed"):
        check.main([])
    git("add", ".")
    git("commit", "-q", "-m", "more")
    assert check.main(["--list"]) == 1 and len(check.taken) == 3
    assert check.main([]) == 0 and len(check.taken) == 6
    with pytest.raises(ConfigError, match=r"STEP = 'tow' is unknown; did you mean 'two'\? valid: one, two, three"):
        check.main(["tow"])


def test_imports_are_found_wherever_they_stand(check):
    source = "import a.b, c\ndef f():\n    from studies.rlbm import g\n    from . import studying\n    from .d import e\n"
    assert check.imported(source) == {"a", "c", "studies"}
