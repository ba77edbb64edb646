"""``kassign-spark``, ``python -m kassign_spark``, and the file that ``spark-submit`` runs."""

import sys
from pathlib import Path

# spark-submit puts this file's folder first on the path, where its modules would hide others.
if sys.path and sys.path[0] and Path(sys.path[0]).resolve() == Path(__file__).resolve().parent:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)


def main() -> int:
    """Run the command; an interrupt that comes while it is still imported is one as well."""
    try:
        from kassign_spark.cli import main as run
        from kassign_spark.interrupts import ignore, received_signal
    except KeyboardInterrupt:
        print("kassign-spark: error: interrupted; nothing was written", file=sys.stderr)
        return 130
    exit_code = run()
    if received_signal() is None:
        ignore()
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
