"""All benchmarks, one after the other: ``make bench``."""

import runpy

if __name__ == "__main__":
    for name in ("queries", "equal", "general", "predict", "advise", "producer", "group_log"):
        runpy.run_module(f"tests.benchmarks.{name}", run_name="__main__")
