"""A worker whose PySpark is an archive, as Spark gives it: read once, not before each task."""

import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

_TASKS = """
import importlib, sys
from zipimport import zipimporter

sys.path[:0] = sys.argv[1:]
import pyspark.sql.functions
import pyarrow as pa
from kassign_spark.groups.rows import all_rows

def among_finders():
    return sum(isinstance(finder, zipimporter) for finder in sys.path_importer_cache.values())

assert pyspark.__file__.startswith(sys.argv[1]), pyspark.__file__
print(among_finders() > 5)
batch = pa.record_batch({"id": [1, 2]})
print([out.num_rows for out in all_rows(lambda table: [table])([batch, batch])])
print(among_finders())
importlib.invalidate_caches()
import pyspark.ml.linalg  # of the archive, and nobody asked for it before
print(pyspark.ml.linalg.__file__.startswith(sys.argv[1]))
"""


@pytest.mark.usefixtures("own_processes")
def test_a_task_leaves_no_archive_to_be_read_again() -> None:
    archives = sorted(map(str, Path(pyspark.__file__).parent.glob("python/lib/*.zip")))
    assert [Path(name).name.partition("-")[0] for name in archives] == ["py4j", "pyspark.zip"]
    ran = subprocess.run(
        [sys.executable, "-c", _TASKS, *reversed(archives)], capture_output=True, text=True
    )
    assert (ran.stdout.splitlines(), ran.stderr) == (["True", "[2, 2]", "0", "True"], "")
