"""The installed version, from the package's metadata."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("netbuf-gym")
except PackageNotFoundError:  # a source tree on the path, not installed
    __version__ = "0+unknown"
