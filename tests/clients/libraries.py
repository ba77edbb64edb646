"""The client libraries themselves as oracles: what each would assign, called on plain states."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiokafka.coordinator.assignors.sticky.sticky_assignor as aiokafka_sticky
import kafka.coordinator.assignors.sticky.sticky_assignor as kafka_python_sticky
import pytest

from kassign_spark.client.hash_order import scala_set_order
from tests.kafka.oracle import Group

_HERE = Path(__file__).parent
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kassign-spark-tests"
_KAFKAJS = "2.2.4"
_LIBRDKAFKA = "@confluentinc/kafka-javascript@1.10.1"
"""A package that has the sources of librdkafka, 2.15.1."""
GO, NODE = ("sarama", "franz-go", "kafka-go"), ("kafkajs",)

Answer = dict[str, set[tuple[str, int]]] | str
"""What each member gets; or the error that the library raises."""


def answers(client: str, groups: Sequence[Group]) -> list[Answer]:
    """Ask a library about each group; the first member leads."""
    if client in GO:
        return _of_process([_go_program()], client, groups)
    if client == "librdkafka":
        return _of_librdkafka(groups)
    if client in NODE:
        return _of_process(["node", str(_HERE / "kafkajs.mjs"), _node_modules()], client, groups)
    return [{"kafka-python": _kafka_python, "aiokafka": _aiokafka}[client](g) for g in groups]


def consumer_command(
    client: str, address: str, group_id: str, assignor: str, topics: Sequence[str]
) -> list[str]:
    """Return the command of a consumer that runs until its standard input ends."""
    if client in GO:
        return [_go_program(), client, address, group_id, assignor, *topics]
    return ["node", str(_HERE / "consume.mjs"), _node_modules(), address, group_id, *topics]


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed, and builds or runs this library")
    return path


def _fetch(command: list[str], folder: Path) -> None:
    """Fetch packages; skip where their registry cannot be had."""
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    if run.returncode:
        pytest.skip(f"{' '.join(command[:3])}: {run.stderr.strip().splitlines()[-1:]}")


def _go_program() -> str:
    program = _CACHE / "go-assignors"
    sources = [*(_HERE / "go").iterdir()]
    if not program.exists() or any(
        source.stat().st_mtime > program.stat().st_mtime for source in sources
    ):
        _CACHE.mkdir(parents=True, exist_ok=True)
        mine = program.with_suffix(f".{os.getpid()}")
        go = _tool("go")
        _fetch([go, "mod", "download"], _HERE / "go")
        command = [go, "build", "-o", str(mine), "."]
        subprocess.run(command, cwd=_HERE / "go", check=True, timeout=900)
        mine.replace(program)
    return str(program)


def _node_modules() -> str:
    folder = _CACHE / f"kafkajs-{_KAFKAJS}"
    if not folder.exists():
        _tool("node")
        mine = folder.with_suffix(f".{os.getpid()}")
        mine.mkdir(parents=True)
        (mine / "package.json").write_text("{}")
        _fetch([_tool("npm"), "install", f"kafkajs@{_KAFKAJS}"], mine)
        mine.rename(folder)
    return str(folder)


def _librdkafka_program() -> str:
    program = _CACHE / "librdkafka-assignors"
    source = _HERE / "c" / "assign.c"
    if not program.exists() or source.stat().st_mtime > program.stat().st_mtime:
        mine = program.with_suffix(f".{os.getpid()}")
        mine.mkdir(parents=True)
        package = _LIBRDKAFKA.rpartition("@")[0].strip("@").replace("/", "-")
        _fetch([_tool("npm"), "pack", _LIBRDKAFKA], mine)
        (archive,) = mine.glob(f"{package}-*.tgz")
        shutil.unpack_archive(archive, mine)
        folder = mine / "package" / "deps" / "librdkafka"
        without = [f"--disable-{name}" for name in ("ssl", "gssapi", "curl", "zstd", "lz4-ext")]
        (folder / "configure").chmod(0o755)
        for command in (
            ["./configure", *without],
            [_tool("make"), "-j2", "-C", "src", "librdkafka.a"],
            [
                *(_tool("gcc"), "-w", "-O1", "-Isrc", "-I.", "-o", str(mine / "assign")),
                *(str(source), "src/librdkafka.a", "-lm", "-lpthread", "-ldl", "-lrt", "-lz"),
            ],
        ):
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=900)
        (mine / "assign").replace(program)
        shutil.rmtree(mine)
    return str(program)


def _of_librdkafka(groups: Sequence[Group]) -> list[Answer]:
    lines = [line for group in groups for line in _as_lines(group)]
    run = subprocess.run(
        [_librdkafka_program()],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    answers: list[Answer] = []
    for group, block in zip(groups, run.stdout.split("end\n"), strict=False):
        rows = [line.split("\t") for line in block.splitlines()]
        assigned: dict[str, set[tuple[str, int]]] = {m.member_id: set() for m in group.members}
        for _, member_id, topic, partition in (row for row in rows if row[0] == "assigned"):
            assigned[member_id].add((topic, int(partition)))
        answers.append("crash" if ["crash"] in rows else assigned)
    return answers


def _as_lines(group: Group) -> Iterable[str]:
    """Topics come as a broker lists them."""
    asked = dict.fromkeys(topic for member in group.members for topic in sorted(member.topics))
    listed = [topic for topic in scala_set_order(asked) if topic in group.topics]
    yield f"group\t{group.assignor}"
    for topic in listed:
        partitions = group.topics[topic]
        if isinstance(partitions, int):
            yield f"topic\t{topic}\t{partitions}"
        else:
            racks = [",".join(sorted({r for r in of if r})) for of in partitions]
            yield "\t".join(["topic", topic, str(len(racks)), *racks])
    for member in group.members:
        generation = -1 if member.generation is None else member.generation
        of_member = (member.group_instance_id or "-", member.rack_id or "-", str(generation))
        yield "\t".join(["member", member.member_id, *of_member])
        yield from (f"reads\t{topic}" for topic in sorted(member.topics) if topic in listed)
        yield from (f"owns\t{topic}\t{partition}" for topic, partition in member.owned)
    yield "end"


def _of_process(command: list[str], client: str, groups: Sequence[Group]) -> list[Answer]:
    lines = "".join(f"{json.dumps(_state(client, group))}\n" for group in groups)
    run = subprocess.run(
        command, input=lines, capture_output=True, text=True, check=True, timeout=600
    )
    result = [json.loads(line) for line in run.stdout.splitlines()]
    return [
        each["error"] if each.get("error") else _by_member(group, each["assigned"] or {})
        for group, each in zip(groups, result, strict=True)
    ]


def _state(client: str, group: Group) -> dict[str, Any]:
    members = [
        {
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "topics": list(member.topics),
            "owned": _by_topic(member.owned),
            "generation": -1 if member.generation is None else member.generation,
            "has_empty_user_data": member.user_data == b"",
            "rack": member.rack_id or "",
        }
        for member in group.members
    ]
    racks = {name: of for name, of in group.topics.items() if not isinstance(of, int)}
    return {
        "client": client,
        "assignor": group.assignor,
        "members": members,
        "topics": {**group.topics, **{name: len(of) for name, of in racks.items()}},
        "leader_racks": {
            name: [of[0] or "" if of else "" for of in each] for name, each in racks.items()
        },
    }


def _by_topic(owned: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for topic, partition in owned:
        numbers.setdefault(topic, []).append(partition)
    return numbers


def _by_member(group: Group, assigned: dict[str, dict[str, Iterable[int]]]) -> Answer:
    return {
        member.member_id: {
            (topic, partition)
            for topic, partitions in (assigned.get(member.member_id) or {}).items()
            for partition in partitions
        }
        for member in group.members
    }


def _cluster(group: Group) -> Any:
    sizes = group.topics
    read = sorted({topic for member in group.members for topic in member.topics} & {*sizes})
    return SimpleNamespace(
        topics=lambda: read,
        partitions_for_topic=lambda name: set(range(sizes[name])) if name in sizes else None,
    )


def _sticky(library: Any, group: Group) -> Answer:
    """Run the part of the assignor that both libraries have, behind the decoding of user data."""
    members = {
        member.member_id: library.StickyAssignorMemberMetadataV1(
            partitions=[library.TopicPartition(*partition) for partition in member.owned],
            generation=-1 if member.generation is None else member.generation,
            subscription=list(member.topics),
        )
        for member in group.members
    }
    executor = library.StickyAssignmentExecutor(_cluster(group), members)
    executor.perform_initial_assignment()
    try:
        executor.balance()
    except KeyError as error:
        return f"KeyError: {error}"
    assigned = {name: dict(executor.get_final_assignment(name)) for name in members}
    return _by_member(group, assigned)


def _kafka_python(group: Group) -> Answer:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

    assignors = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
    if group.assignor == "sticky":
        return _sticky(kafka_python_sticky, group)
    members = [
        SimpleNamespace(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=SimpleNamespace(
                topics=list(member.topics),
                owned_partitions=[
                    SimpleNamespace(topic=topic, partitions=[partition])
                    for topic, partition in member.owned
                ],
                generation_id=-1,  # its subscriptions are of version 1, which has none
            ),
        )
        for member in group.members
    ]
    try:
        if group.assignor == "cooperative-sticky":
            plan = CooperativeStickyAssignor().assign(_cluster(group), members)
        else:
            plan = assignors[group.assignor].assign(_cluster(group), members)
    except KeyError as error:
        return f"KeyError: {error}"
    assigned = {name: dict(of.assigned_partitions) for name, of in plan.items()}
    return _by_member(group, assigned)


def _aiokafka(group: Group) -> Answer:
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata

    assignors = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
    if group.assignor == "sticky":
        return _sticky(aiokafka_sticky, group)
    members = {
        member.member_id: ConsumerProtocolMemberMetadata(0, list(member.topics), b"")
        for member in group.members
    }
    plan = assignors[group.assignor].assign(_cluster(group), members)
    return _by_member(group, {name: dict(of.assignment) for name, of in plan.items()})
