"""What ``kassign-spark snapshot`` says of what it wrote, wherever it read it."""

from kassign_spark.commands.common import Facts
from kassign_spark.display import not_shown, plural, printable, table


def lines(facts: Facts) -> list[str]:
    """Say it."""
    said = [
        f"{plural(facts['group_count'], 'group')}, {plural(facts['member_count'], 'member')}, "
        f"{plural(facts['topic_count'], 'topic')}, "
        f"{plural(facts['owned_count'], 'owned partition')}"
    ]
    if facts["omitted"]:
        rows = ([row["kind"], row["name"], row["reason"]] for row in facts["omitted"])
        said += ["", *table(["left out", "name", "reason"], rows)]
    hidden = facts["omitted_count"] - len(facts["omitted"])
    said += not_shown(hidden, "name", " that were left out", of=facts["omitted_count"])
    names = ", ".join(facts["tables"])
    return [*said, "", f"the snapshot is in {printable(facts['output'])}: {names}"]
