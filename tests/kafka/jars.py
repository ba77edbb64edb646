"""Jars by Maven coordinate, fetched by Spark's own Ivy, so that Python and Java are all it takes.

Ivy is asked once a list of coordinates; the class path that it answered is kept in ``build/jars``
and asked for again when that file, or a jar named in it, is gone.
"""

import os
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pyspark

KAFKA_VERSION = "4.4.0"
"""The pinned Kafka: what the assignors of the tests' oracle and broker are."""

CLIENTS = (f"org.apache.kafka:kafka-clients:{KAFKA_VERSION}",)
BROKER = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.5",
)
COORDINATOR = (f"org.apache.kafka:kafka-group-coordinator:{KAFKA_VERSION}",)
KAFKA_SOURCE = ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1",)
"""Of a version of Spark 4.1 that repositories have, for processes of their own: its client is an
older one than the pinned."""
BROKER_EXCLUDES = ("org.apache.kafka:kafka-tools-api",)  # not in every repository; never loaded

_CACHE = Path(__file__).parents[2] / "build" / "jars"

# A process of its own: Ivy runs when a JVM is launched, and a Python process has one JVM.
_RESOLVE = """
import sys
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

conf = SparkConf(loadDefaults=False).set("spark.jars.packages", sys.argv[1])
if sys.argv[2]:
    conf.set("spark.jars.excludes", sys.argv[2])
gateway = launch_gateway(conf)
print("JARS " + gateway.jvm.System.getProperty("spark.jars"))
gateway.shutdown()
"""


def clients_jar() -> Path:
    """The kafka-clients jar alone: what else it needs, Spark's class path has."""
    (jar,) = (jar for jar in class_path(CLIENTS) if jar.name.endswith(f"-{KAFKA_VERSION}.jar"))
    return jar


def coordinator_jars() -> list[Path]:
    """The broker's group coordinator and what of its needs Spark's class path lacks."""
    needed = class_path(COORDINATOR, BROKER_EXCLUDES)
    prefixes = ("org.apache.kafka_", "com.dynatrace.hash4j_", "com.google.re2j_")
    return [
        jar for jar in needed if jar.name.startswith(prefixes) and "kafka-clients" not in jar.name
    ]


def graphframes_jars() -> list[Path]:
    """GraphFrames, where somebody built it into the local Maven repository; else nothing."""
    versions = Path.home() / ".m2/repository/io/graphframes/graphframes-spark4_2.13"
    return sorted(versions.glob("*/*.jar"))[-1:]


def broker_class_path() -> list[Path]:
    """The broker's jars; Scala's library is Spark's, whose Ivy leaves out what Spark has itself."""
    scala = sorted((Path(pyspark.__file__).parent / "jars").glob("scala-library-2.13.*.jar"))
    return class_path(BROKER, BROKER_EXCLUDES) + scala


def tools_class_path(version: str) -> list[Path]:
    """The command-line tools of a version; what is in Spark's folder of jars, Ivy leaves out."""
    name = "kafka_2.13" if version < "3.8" else "kafka-tools"
    jars = class_path((f"org.apache.kafka:{name}:{version}",), BROKER_EXCLUDES)
    return [*jars, Path(pyspark.__file__).parent / "jars" / "*"]


def class_path(coordinates: tuple[str, ...], excludes: tuple[str, ...] = ()) -> list[Path]:
    """Paths of the jars of ``coordinates`` and of all they depend on.

    Raises:
        RuntimeError: Ivy could not resolve them; the text has the end of what it said.
    """
    name = "+".join(coordinate.split(":", 1)[1].replace(":", "-") for coordinate in coordinates)
    cached = _CACHE / f"{name}.classpath"
    if cached.is_file():
        jars = [Path(line) for line in cached.read_text().splitlines()]
        if jars and all(jar.is_file() for jar in jars):
            return jars
    jars = _resolve(coordinates, excludes)
    _CACHE.mkdir(parents=True, exist_ok=True)
    partial = cached.with_suffix(f".{os.getpid()}")
    partial.write_text("".join(f"{jar}\n" for jar in jars))
    partial.replace(cached)
    return jars


def _resolve(coordinates: tuple[str, ...], excludes: tuple[str, ...]) -> list[Path]:
    answer = subprocess.run(
        [sys.executable, "-c", _RESOLVE, ",".join(coordinates), ",".join(excludes)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    for line in answer.stdout.splitlines():
        if line.startswith("JARS "):
            urls = line.removeprefix("JARS ").split(",")
            return [Path(urllib.parse.unquote(urllib.parse.urlparse(url).path)) for url in urls]
    output = "\n".join(answer.stderr.splitlines()[-15:])
    raise RuntimeError(f"cannot resolve {', '.join(coordinates)}:\n{output}")


if __name__ == "__main__":
    broker_class_path()
    clients_jar()
    coordinator_jars()
    class_path(KAFKA_SOURCE)
