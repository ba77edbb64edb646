"""Spark's daemon of Python workers, quick for the thousands of small tasks of the tests.

Before each task a worker forgets which modules are there, for which Python before 3.13 reads the
directory of every archive that it has ever imported from; after it, it collects garbage. What is in
Spark's archives is installed as well, and what is loaded before the workers are forked is no
garbage.
"""

import gc
import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    others = [path for path in sys.path if Path(path).suffix not in (".jar", ".zip")]
    if any(Path(path, "pyspark").is_dir() for path in others):
        sys.path[:] = others
        sys.path_importer_cache.clear()
        import_module("kassign_spark")
    import_module("pyspark.worker")
    gc.freeze()
    import_module("pyspark.daemon").manager()
