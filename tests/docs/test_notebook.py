"""The notebook of the examples shows what it shows: it is run, and its outputs are compared."""

import re
from typing import Any

import pytest

from kassign_spark.errors import InputError, KassignError
from tests.docs.reader import ROOT

_NOTEBOOK = ROOT / "examples" / "fleet.ipynb"


def _shown(book: Any) -> list[list[dict[str, Any]]]:
    """What each cell shows; of a chart its words, as its lines differ in the last digit."""
    shown = []
    for cell in book.cells:
        outputs = []
        for output in cell.get("outputs", []):
            data = dict(output.get("data", {}))
            if svg := data.get("image/svg+xml"):
                data["image/svg+xml"] = re.findall(r"<text[^>]*>([^<]*)<", svg)
            outputs.append({**output, "data": data})
        shown.append(outputs)
    return shown


@pytest.mark.slow
def test_the_notebook(own_processes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    # Here, since the test below needs no Jupyter.
    import nbformat

    from tests.docs.notebook import run

    for name in ("PYSPARK_PYTHON", "PYTHONPATH"):  # which the run sets for its kernel
        monkeypatch.setenv(name, "")
    kept, now = nbformat.read(_NOTEBOOK, as_version=4), run(_NOTEBOOK)
    assert _shown(now) == _shown(kept)
    cells = [cell for cell in now.cells if cell.cell_type == "code"]
    tables = [cell for cell in cells if "<table" in str(cell.outputs)]
    assert len(tables) == 4
    assert sum("<svg" in str(cell.outputs) for cell in cells) == 1
    (error,) = (o for cell in cells for o in cell.outputs if o.output_type == "error")
    assert error.traceback == [f"{error.ename}: {error.evalue}"]
    assert error.evalue.startswith("unknown assignor 'stiky'")


def test_an_error_is_one_line_in_a_notebook() -> None:
    """IPython asks an exception for its own traceback by this name."""
    error = InputError("table members: what\nis wrong")
    assert error._render_traceback_() == [f"InputError: {error}"]
    assert "\n" not in str(error)
    assert issubclass(InputError, KassignError)
