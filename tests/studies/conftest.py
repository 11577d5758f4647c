"""What tests of studies share: a section of an appendix as it is made of a finished campaign."""

import shutil

import pytest

from studies.common import kept
from studies.common.campaign import keep_rows


@pytest.fixture
def section_of(tmp_path):
    """A function that keeps a finished campaign's rows in a checkout of their own and makes their section."""

    def make(experiment, section, folder):
        keep_rows(experiment, section, folder, tmp_path)
        drawn = kept.find_drawn_folder(tmp_path, experiment.name, section)
        if (folder / "figures").is_dir():
            shutil.copytree(folder / "figures", drawn)
            kept.mark_drawn(tmp_path, experiment.name, section)
        return experiment.sections[section](kept.read_rows(tmp_path, experiment.name, section))

    return make
