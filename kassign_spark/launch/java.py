"""Find and check the Java that commands start, and its archive of classes for a quick start.

Java spends a third of a command's time on reading and checking Spark's classes. An archive keeps
them as they are in memory afterwards (JEP 350, since Java 13; with Java 17 all of it is there).
Java takes an archive only if the Java and the jars are those that it was made with.
"""

import hashlib
import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from pyspark.version import __version__ as pyspark_version

from kassign_spark.errors import KassignError

_JAVA_NEEDED = 17
INSTALL_JAVA = (
    f"install Java {_JAVA_NEEDED} or later "
    f"(Debian and Ubuntu: apt-get install openjdk-{_JAVA_NEEDED}-jre-headless) or set JAVA_HOME"
)

_QUIET = "-Xlog:disable"
"""Options that keep Java's remarks about an archive out of a command's output."""


def check_java() -> Path:
    """Find Java by its files, and refuse an old one before a shell script complains.

    A Java that lies there without its file ``release`` is asked.

    Raises:
        KassignError: it says what to install.
    """
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if program is None:
        place = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise KassignError(f"Java was not found {place}: {INSTALL_JAVA}")
    java = Path(program).resolve()
    release = java.parent.parent / "release"
    version_text = release.read_text() if release.is_file() else _version_of(program)
    number = re.search(r'^(?:JAVA_VERSION=|\w+ version )"(?:1\.)?(\d+)', version_text, re.MULTILINE)
    if number and int(number[1]) < _JAVA_NEEDED:
        raise KassignError(f"Java {number[1]} ({program}) is too old: {INSTALL_JAVA}")
    return java


def archive_path() -> Path:
    """Return the path of the archive for this Java and this Spark, whether it exists or not.

    ``java-*.jsa`` in ``$XDG_CACHE_HOME/kassign-spark``, by default ``~/.cache/kassign-spark``.

    Raises:
        KassignError: there is no Java.
    """
    java, spark = check_java(), find_spec("pyspark")
    release = java.parent.parent / "release"
    parts = [str(java), str(spark and spark.origin), pyspark_version]
    if release.is_file():
        parts.append(release.read_text())
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "kassign-spark" / f"java-{key}.jsa"


def archive_options() -> str:
    """Return the options that let Java use the archive; empty if there is none."""
    try:
        path = archive_path()
        # A path with a blank would be two options.
        if not path.is_file() or re.search(r"\s", str(path)):
            return ""
    except (KassignError, OSError, RuntimeError):
        # Neither Java nor a home is found: who starts Java without an archive says what is wrong.
        return ""
    return f"-XX:SharedArchiveFile={path} {_QUIET}"


def archiving_options(path: Path) -> str:
    """Return the options that let Java write an archive of its loaded classes when it ends."""
    return f"-XX:ArchiveClassesAtExit={path} {_QUIET}"


def _version_of(java: str) -> str:
    """Return the version text of a Java; empty if it does not run, as Spark will report."""
    try:
        completed = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return completed.stderr
