"""Native build and package list; metadata and dependencies are in setup.cfg.

`zoo/` and `conf/` stand at the top of the tree and are installed as `netbuf_gym.zoo` and
`netbuf_gym.conf` (`package_dir` in setup.cfg maps them), so the list of packages is computed here.
"""

from setuptools import find_packages, setup


def mapped(name: str) -> list[str]:
    """The package `netbuf_gym.<name>` that lives in the top-level folder `name`, with its subpackages."""
    return [f"netbuf_gym.{name}"] + [f"netbuf_gym.{name}.{sub}" for sub in find_packages(name)]


setup(
    cmake_source_dir=".",
    packages=find_packages(include=["netbuf_gym", "netbuf_gym.*"]) + mapped("zoo") + mapped("conf"),
)
