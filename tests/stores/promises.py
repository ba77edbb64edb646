"""What a store is asked in a test: files in and out, and the rows of a plan."""

import json
from pathlib import Path
from typing import Protocol

from tests.small_fleet import write_small_fleet
from tests.stores.driver import Driver


class Store(Protocol):
    """A store that runs on loopback."""

    name: str
    root: str

    def settings(self) -> dict[str, str]: ...
    def environment(self) -> dict[str, str]: ...
    def put(self, path: str, content: bytes) -> None: ...
    def get(self, path: str) -> bytes: ...
    def files(self, folder: str) -> list[str]: ...


def put_fleet(store: Store, folder: Path) -> str:
    """Bring the small fleet there; gives its address."""
    for file in write_small_fleet(folder / "fleet").iterdir():
        store.put(f"fleet/{file.name}", file.read_bytes())
    return f"{store.root}/fleet"


def current(store: Store, plan: str) -> str:
    """The folder with the tables of a plan that is there."""
    if "current.json" not in store.files(plan):
        return plan
    run = json.loads(store.get(f"{plan}/current.json"))["run"]
    return f"{plan}/{run}"


def plans(store: Store, folder: str) -> list[str]:
    """Every folder below one that holds some of the table assignment, whole or not."""
    parts = [f"{folder}/{name}" for name in store.files(folder) if "/assignment/" in name]
    return sorted({name.partition("/assignment/")[0] for name in parts})


def rows(store: Store, plan: str, table: str = "assignment") -> list[str]:
    """The lines of a table that was written as JSON, in order."""
    folder = f"{current(store, plan)}/{table}"
    parts = [name for name in store.files(folder) if name.startswith("part-")]
    return sorted(
        line for name in parts for line in store.get(f"{folder}/{name}").decode().splitlines()
    )


def rows_of(folder: Path) -> list[str]:
    """The same of a folder of this machine."""
    return sorted(line for part in folder.glob("part-*") for line in part.read_text().splitlines())


def stop_while_it_writes(driver: Driver, store: Store, folder: str) -> None:
    """Stop a driver when another plan begins to be there."""
    before = plans(store, folder)
    driver.stop_when(lambda: plans(store, folder) != before)
