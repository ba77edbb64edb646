"""Run the example notebook and keep what it shows: ``python -m tests.docs.notebook FILE...``."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

_ROOT = Path(__file__).parents[2]
_MEMORY = re.compile(r"(?<= at )0x[0-9a-f]+")


def run(path: Path) -> Any:
    """Run a notebook from its own folder, in a kernel of this Python, and give it with its outputs.

    What Java says when it starts is left out, and so is what differs from run to run.

    Raises:
        CellExecutionError: a cell failed that is not tagged ``raises-exception``.
    """
    book = nbformat.read(path, as_version=4)
    # Jupyter's own name for "python3" may be another Python than this one.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(_ROOT)
    client = NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            outputs = (_plain(output) for output in cell.outputs)
            cell.outputs = [each for each in outputs if each is not None]
    book.metadata["language_info"] = {"name": "python"}
    return book


def _plain(output: Any) -> Any:
    if output.get("name") == "stderr":
        return None
    for kind, text in output.get("data", {}).items():
        output["data"][kind] = _MEMORY.sub("0x0", text)
    return output


def main() -> None:
    """Write each notebook anew."""
    for name in sys.argv[1:]:
        path = Path(name)
        nbformat.write(run(path), path)


if __name__ == "__main__":
    main()
