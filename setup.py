"""Native build, package list, links; the other metadata and the dependencies are in setup.cfg.

The data at the top of the tree, `zoo/`, `conf/` and `results/suites/`, is installed below `netbuf_gym/data`
(`package_dir` in setup.cfg maps it; `netbuf_gym.utils.data` finds it). README.md links to files beside it; an index of packages
shows it elsewhere, so that the uploaded text links to the repository (`website/links.py`).
"""

import re
import runpy
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
LINKS = runpy.run_path(str(HERE / "website" / "links.py"))
URL, FILES = LINKS["URL"], LINKS["FILES"]

setup(
    cmake_source_dir=".",
    packages=[
        *find_packages(include=["netbuf_gym", "netbuf_gym.*"]),
        *re.findall(r"netbuf_gym\.data\.\S+", LINKS["CONFIG"]["options"]["package_dir"]),
    ],
    long_description=LINKS["link_to_repository"]((HERE / "README.md").read_text(encoding="utf-8")),
    project_urls={
        "Homepage": URL,
        "Documentation": f"{FILES}/docs/index.md",
        "Source": URL,
        "Changelog": f"{FILES}/CHANGELOG.md",
        "Issues": f"{URL}/issues",
    },
)
