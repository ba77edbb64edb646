"""Other versions of Python, where the machine has them."""

import os
import shutil
import sys
from pathlib import Path


def interpreter_of(version: str) -> str | None:
    """Where the machine has such a Python: on the path, or among pyenv's."""
    if sys.version.startswith(f"{version}."):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    rows = sorted(pyenv.glob(f"{version}.*/bin/python3"))
    return str(rows[-1]) if rows else shutil.which(f"python{version}")
