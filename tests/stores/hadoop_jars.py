"""What Spark lacks for S3 and for a Hadoop of one machine, in the version of Spark's own Hadoop."""

import re
from pathlib import Path

import pyspark

from tests.kafka.jars import class_path

_SPARK_JARS = Path(pyspark.__file__).parent / "jars"
(HADOOP_VERSION,) = (
    match[1]
    for jar in _SPARK_JARS.iterdir()
    if (match := re.fullmatch(r"hadoop-client-api-(.+)\.jar", jar.name))
)
_SDK_VERSION = "2.29.52"
"""Of the AWS SDK that Hadoop 3.4.2 is built with."""

S3A = (
    f"org.apache.hadoop:hadoop-aws:{HADOOP_VERSION}",
    *(
        f"software.amazon.awssdk:{module}:{_SDK_VERSION}"
        for module in ("s3", "s3-transfer-manager", "sts", "apache-client")
    ),
)
S3A_EXCLUDES = ("software.amazon.awssdk:bundle",)
"""The SDK of all of AWS's services in one jar of some 600 MB; the four modules are 18 MB."""

COMMITTER = ("org.apache.spark:spark-hadoop-cloud_2.13:4.1.1",)
"""Of a version of Spark 4.1 that repositories have; without the connectors of all clouds."""
_ALL_CLOUDS = tuple(
    f"{group}:*"
    for group in (
        *("org.apache.hadoop", "org.wildfly.openssl", "org.eclipse.jetty", "joda-time"),
        *("org.apache.httpcomponents", "software.amazon.*", "com.*"),
    )
)

MINI_CLUSTER = (
    f"org.apache.hadoop:hadoop-client-minicluster:{HADOOP_VERSION}",
    # What its ResourceManager misses: of others, and of Java since 11.
    "org.bouncycastle:bcpkix-jdk18on:1.78.1",
    "org.glassfish.jaxb:jaxb-runtime:2.3.9",
)


def s3a_jars() -> list[Path]:
    """S3A and the modules of the SDK that it needs."""
    return class_path(S3A, S3A_EXCLUDES)


def committer_jars() -> list[Path]:
    """Spark's part of the committers that Hadoop has for object stores."""
    return class_path(COMMITTER, _ALL_CLOUDS)


def mini_cluster_jars() -> list[Path]:
    """Hadoop's daemons; the classes of its clients and the logging are those that Spark has."""
    return [
        jar
        for jar in class_path(MINI_CLUSTER)
        if not jar.name.startswith(("org.apache.hadoop_hadoop-client-api", "org.slf4j_"))
        and "hadoop-client-runtime" not in jar.name
    ]


if __name__ == "__main__":
    s3a_jars()
    committer_jars()
    mini_cluster_jars()
