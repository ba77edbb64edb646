"""The JSON documents of all commands on the examples, by the PySpark of this interpreter.

``python -m tests.versions.documents FILE [URL]`` writes them, one line a command. Where FILE is
there, it was written with another PySpark, or with another kind of session: then every document has
to be the same, and what differs is printed. With URL the commands use that server of Spark Connect.
"""

import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path

import pyspark

from kassign_spark import cli
from kassign_spark.launch.command_session import open_session

_FLEET = "examples/fleet"
COMMANDS = (
    "validate examples/fleet",
    "assign examples/fleet --output {folder}/plan",
    "assign examples/fleet --assignor sticky",
    "assign examples/fleet --assignor range --output {folder}/range --format csv",
    "assign examples/fleet --assignor cooperative-sticky --output {folder}/sticky --format json",
    "rebalance examples/fleet --output {folder}/rounds --format json",
    "predict examples/fleet",
    "predict examples/both-protocols",
    "compare examples/fleet",
    "compare examples/both-protocols",
    "diff examples/fleet {folder}/plan",
    "diff {folder}/range {folder}/sticky",
    "explain examples/fleet",
    "graph examples/fleet --output {folder}/graph",
    "advise examples/fleet",
    "touched-by examples/fleet payments.refunds",
    "simulate examples/fleet --events examples/events.yaml",
    "simulate examples/fleet --events examples/grow.yaml",
    "simulate examples/fleet --events examples/deploy.yaml",
    "migrate examples/both-protocols",
    "coordinators examples/fleet",
    "check-settings examples/consumer.properties --client-version 4.1.0",
    "history --log examples/group-log",
    "history --log examples/group-log --explain",
    "plan examples/fleet --weights examples/rates.csv --missing-weight 0",
    "tradeoff examples/fleet --weights examples/rates.csv --missing-weight 0",
    "report {folder}/plan --output {folder}/report.html",
    "deliver {folder}/plan --group payments-refunds",
)


def documents(folder: str, remote: str | None = None) -> dict[str, list[object]]:
    """Return the exit code and the document of each command, by its text."""
    answers: dict[str, list[object]] = {}
    with open_session(_FLEET, remote=remote):
        for command in COMMANDS:
            words = [word.format(folder=folder) for word in command.split()]
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    code: object = cli.main([*words, "--json"])
                except SystemExit as exit:
                    code = exit.code
            text = (out.getvalue() or err.getvalue()).replace(folder, "{folder}")
            text = text.replace(str(Path.cwd()), "{here}")
            answers[command] = [code, json.loads(text) if text.startswith("{") else text]
            print(".", end="", flush=True)
    print()
    return answers


def main(path: Path, remote: str | None = None) -> int:
    with tempfile.TemporaryDirectory() as folder:
        answers = documents(folder, remote)
    print(f"PySpark {pyspark.__version__}: {len(answers)} documents")
    if not path.exists():
        path.write_text("".join(f"{json.dumps([*item])}\n" for item in answers.items()))
        return 0
    others = dict(json.loads(line) for line in path.read_text().splitlines())
    differing = [command for command in COMMANDS if answers[command] != others[command]]
    for command in differing:
        print(f"differs: {command}: {_difference(answers[command], others[command])}")
    return 1 if differing else 0


def _difference(here: object, there: object, place: str = "") -> str:
    """Return the first place where two documents differ, and what each has there."""
    if isinstance(here, dict) and isinstance(there, dict):
        pairs = [(name, here.get(name), there.get(name)) for name in sorted({*here, *there})]
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        pairs = [(str(at), *both) for at, both in enumerate(zip(here, there, strict=True))]
    else:
        return f"{place or 'whole'}: {here!r} here, {there!r} before"
    return next(_difference(a, b, f"{place}/{name}") for name, a, b in pairs if a != b)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
