"""Version of the installed package, from its metadata."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("netbuf-gym")
except PackageNotFoundError:  # imported from a source tree that is not installed
    __version__ = "0+unknown"
