"""A program: Hadoop's own small cluster (HDFS, YARN) on loopback, in one JVM, until its input ends.

It takes a folder and what to start (``hdfs`` or ``yarn``, which has HDFS too), leaves the files of
``HADOOP_CONF_DIR`` in the folder ``conf`` there, and says the address of WebHDFS.
"""

import os
import sys
from pathlib import Path
from typing import Any

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from tests.java import SHORT_LIVED, log4j2_file
from tests.stores.hadoop_jars import mini_cluster_jars

_FIFO = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"
_SETTINGS = {
    "dfs.replication": "1",
    "dfs.namenode.fs-limits.min-block-size": "0",
    "yarn.resourcemanager.scheduler.class": _FIFO,
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.nodemanager.resource.memory-mb": "6144",
    "yarn.nodemanager.resource.cpu-vcores": "8",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.9",
}


def run(folder: Path, daemons: str) -> None:
    (folder / "conf").mkdir()
    log4j2 = log4j2_file(folder, "hadoop.log")
    conf = SparkConf(loadDefaults=False)
    conf.set("spark.driver.memory", "1g")
    options = (
        f"{SHORT_LIVED} -Dlog4j2.configurationFile={log4j2.as_uri()} -Dtest.build.data={folder}"
    )
    conf.set("spark.driver.extraJavaOptions", options)
    conf.set("spark.driver.extraClassPath", os.pathsep.join(map(str, mini_cluster_jars())))
    os.chdir(folder)
    jvm: Any = launch_gateway(conf).jvm  # type: ignore[no-untyped-call]
    settings = jvm.org.apache.hadoop.yarn.conf.YarnConfiguration()
    for name, value in {**_SETTINGS, "hdfs.minidfs.basedir": f"{folder}/dfs"}.items():
        settings.set(name, value)
    dfs = jvm.org.apache.hadoop.hdfs.MiniDFSCluster.Builder(settings).numDataNodes(1).build()
    dfs.waitActive()
    settings.set("fs.defaultFS", dfs.getURI().toString())
    if daemons == "yarn":
        yarn = jvm.org.apache.hadoop.yarn.server.MiniYARNCluster("yarn", 1, 1, 1)
        yarn.init(settings)
        yarn.start()
        settings = yarn.getConfig()
    # Not all that the cluster is set to: clients lack the classes of its daemons.
    configuration = jvm.org.apache.hadoop.conf.Configuration(False)
    configuration.set("fs.defaultFS", dfs.getURI().toString())
    for service in ("", ".scheduler", ".resource-tracker", ".admin", ".webapp"):
        name = f"yarn.resourcemanager{service}.address"
        if daemons == "yarn":
            configuration.set(name, settings.get(name))
    for name in ("core-site.xml", "yarn-site.xml"):
        stream = jvm.java.io.FileOutputStream(str(folder / "conf" / name))
        configuration.writeXml(stream)
        stream.close()
    address = dfs.getConfiguration(0).get("dfs.namenode.http-address")
    print(dfs.getURI().toString(), f"http://{address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2])
