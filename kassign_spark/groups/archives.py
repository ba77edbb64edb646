"""Zip archives that a Python worker has imported from, and reads again before each of its tasks."""

import sys
from zipimport import zipimporter

_PACKAGES = ("py4j", "pyspark", __name__.partition(".")[0])


def forget_archives() -> None:
    """Keep the worker's next task from reading Spark's archives, and ours, once more.

    Before each task PySpark 4.1 has all finders of modules drop what they know (SPARK-54744), and
    in Python before 3.13 one of an archive then reads its directory (CPython gh-103200): once for
    each package imported from there, in all 0.1 s a task. A finder that is gone is not asked. Who
    imports makes another, of what was read; none of these archives changes while a worker lives.
    """
    loaders = (sys.modules[name].__loader__ for name in _PACKAGES if name in sys.modules)
    archives = {loader.archive for loader in loaders if isinstance(loader, zipimporter)}
    for path, finder in [*sys.path_importer_cache.items()]:
        if isinstance(finder, zipimporter) and finder.archive in archives:
            del sys.path_importer_cache[path]
