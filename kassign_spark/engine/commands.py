"""The commands of a program to blocks: each is a method of the block and answers with vectors."""

from typing import Any, NamedTuple, Protocol

import numpy.typing as npt

Vector = npt.NDArray[Any]
Answer = tuple[Vector, ...]


class PerBlock(NamedTuple):
    """An argument that is another one for each block: a row, or an item, a block."""

    rows: Any


class Command(NamedTuple):
    """A method of a block and its arguments."""

    name: str
    arguments: tuple[Any, ...] = ()


class Engine(Protocol):
    """An engine holds the blocks."""

    def step(self, commands: list[Command]) -> list[Answer]:
        """Run the commands on every block; returns their answers, in the order of blocks."""


class InProcess:
    """Blocks in this process."""

    def __init__(self, blocks: list[Any]) -> None:
        self.blocks = blocks

    def step(self, commands: list[Command]) -> list[Answer]:
        """Run the commands on every block."""
        return [run(block, commands, number) for number, block in enumerate(self.blocks)]


def run(block: object, commands: list[Command], number: int) -> Answer:
    """Run the commands on the block of this number. Returns the last one's answer."""
    answer: Answer = ()
    for name, arguments in commands:
        arguments_of_block = (a.rows[number] if isinstance(a, PerBlock) else a for a in arguments)
        answer = getattr(block, name)(*arguments_of_block)
    return answer
