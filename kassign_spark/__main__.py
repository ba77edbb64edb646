"""``python -m kassign_spark``, and the file that ``spark-submit`` runs."""

import sys
from pathlib import Path

# spark-submit puts this file's folder first on the path, where its modules would hide others.
if sys.path and sys.path[0] and Path(sys.path[0]).resolve() == Path(__file__).resolve().parent:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from kassign_spark.cli import main

if __name__ == "__main__":
    sys.exit(main())
