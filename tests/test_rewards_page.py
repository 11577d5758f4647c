"""docs/rewards.md says what there is. Its blocks are run by tests/test_code_blocks.py."""

from pathlib import Path

from netbuf_gym import rewards, tasks, wrappers

ROOT = Path(__file__).parent.parent


def test_what_there_is_is_on_the_page():
    page = (ROOT / "docs" / "rewards.md").read_text()
    for name in wrappers.__all__:
        assert f"`{name}`" in page or f"wrappers.{name}" in page or name == "DurationLimit", name
    for kind in rewards.UTILITIES:
        assert f"`{kind.name}`" in page
    for record in tasks.records():
        assert tasks.telemetry_table(record.rules) in page
    assert "rewards.md" in (ROOT / "mkdocs.yml").read_text()
