"""What the tests' programs of Java have in common: how they are compiled, and where they log."""

from pathlib import Path

SHORT_LIVED = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:MetaspaceSize=256m"
)
"""For many small plans, each run once: Java's second compiler takes half of all processor time.

Without it Java keeps a fifth of the room for compiled code, 48 MB, which some minutes of tests
fill; from then on nothing is compiled any more, and in the end a query fails for want of it.
"""

ROOMY = "-Xms1g -XX:NewSize=512m"
"""For a heap of 2 GB: one that grows by itself is collected three times as often."""

_LOG4J2 = """
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}}: %m%n
"""


def log4j2_file(folder: Path, log: str) -> Path:
    """Write settings of Log4j into a folder, for a log of that name beside them."""
    settings = folder / "log4j2.properties"
    settings.write_text(_LOG4J2.format(file=folder / log))
    return settings
