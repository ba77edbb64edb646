"""Read the output of ``kafka-topics.sh --describe`` as rows of ``topics`` and ``leaders``."""

import re
from typing import NamedTuple

from kassign_spark.brokers.coordinator import OFFSETS_TOPIC
from kassign_spark.display import format_value
from kassign_spark.errors import InputError
from kassign_spark.live.text_lines import Text, whole_number

LARGEST_COUNT = 2**31 - 1
_TOPIC = re.compile(
    r"\s*Topic: ?(\S+)\s+(?:TopicId: ?(\S+)\s+)?PartitionCount: ?(\S+)\s+ReplicationFactor:.*"
)
_PARTITION = re.compile(r"\s*Topic: ?(\S+)\s+Partition: ?(\S+)\s+Leader: ?(\S+)(\s.*)?")
_ERROR = re.compile(r"Error while executing topic command|Topic .* doesn't exist!|Error: ")


class DescribedTopic(NamedTuple):
    """A topic: its id where the tool prints it (from 2.8), and leaders by partition."""

    where: str
    num_partitions: int
    topic_id: str | None
    leaders: dict[int, int | None]


def read_described_topics(text: Text) -> dict[str, DescribedTopic]:
    """Read the topics of a text of any version from 2.0 to 4.4.

    Raises:
        InputError: a line is none of such a text, a topic appears twice and differs, or does not
            have as many partitions as it says; its file and number come first.
    """
    topics: dict[str, DescribedTopic] = {}
    for number, line in text.numbered():
        where = text.where(number)
        if match := _TOPIC.fullmatch(line):
            count = whole_number(match[3], f"{where}, PartitionCount", LARGEST_COUNT)
            earlier = topics.setdefault(match[1], DescribedTopic(where, count, match[2], {}))
            if earlier[1:3] != (count, match[2]):
                raise InputError(f"{where}: topic {match[1]} differs from that of {earlier.where}")
        elif match := _PARTITION.fullmatch(line):
            topic = topics.get(match[1])
            if topic is None:
                raise InputError(
                    f"{where}: no line before says how many partitions topic {match[1]} has"
                )
            partition = whole_number(match[2], f"{where}, Partition", topic.num_partitions - 1)
            leader = None
            if match[3] != "none":
                leader = whole_number(match[3].removeprefix("-"), f"{where}, Leader", LARGEST_COUNT)
            topic.leaders[partition] = None if match[3].startswith("-") else leader
        elif not _ERROR.match(line.strip()):
            raise InputError(
                f"{where}: is not a line of kafka-topics.sh --describe: "
                f"{format_value(line.strip())}"
            )
    for name, topic in topics.items():
        if topic.leaders and len(topic.leaders) != topic.num_partitions:
            raise InputError(
                f"{topic.where}: topic {name} has PartitionCount {topic.num_partitions}, and lines "
                f"of {len(topic.leaders)} partitions: the text is cut"
            )
    if not topics:
        raise InputError(f"{text.path}: has no topic, as kafka-topics.sh --describe prints them")
    return topics


def leaders_of_offsets(topics: dict[str, DescribedTopic]) -> list[tuple[str, int, int | None]]:
    """Return topic, partition and leader of the topic whose leaders coordinate the groups."""
    topic = topics.get(OFFSETS_TOPIC)
    leaders = {} if topic is None else topic.leaders
    return [(OFFSETS_TOPIC, partition, leaders[partition]) for partition in sorted(leaders)]
