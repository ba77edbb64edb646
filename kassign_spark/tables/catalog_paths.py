"""Names of catalog tables in place of a folder: ``table:CATALOG.SCHEMA[@WHEN]``.

No folder is meant by such a name (one called so is ``./table:...``), and no table by any other.
"""

import re
from typing import NamedTuple, Self

from kassign_spark.display import is_login, mask_address
from kassign_spark.errors import InputError

PREFIX = "table:"
_PART = r"`(?:[^`]|``)+`|[^.`@/\s]+"
_PLACE = re.compile(rf"((?:{_PART})(?:\.(?:{_PART}))*)(?:@(\S(?:.*\S)?))?")
_RUN = re.compile(r"\d{8}T\d{12}Z-[0-9a-f]{8}")


class CatalogPath(NamedTuple):
    """Tables of a catalog: one schema, and which of the runs in it.

    Attributes:
        parts: the names of catalog and schema, or a schema of the current catalog.
        when: a timestamp or the id of a run; None: the newest run.
    """

    parts: tuple[str, ...]
    when: str | None = None

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse ``table:CATALOG.SCHEMA``, ``...@TIMESTAMP`` or ``...@RUN_ID``.

        Raises:
            InputError: it is no such name.
        """
        match = _PLACE.fullmatch(text.removeprefix(PREFIX))
        if match is None:
            raise InputError(
                f"{text}: is not a name of tables; write {PREFIX}CATALOG.SCHEMA, for an earlier "
                f"time {PREFIX}CATALOG.SCHEMA@TIMESTAMP, and names with dots or blanks in "
                "backquotes"
            )
        return cls(tuple(_unquote(part) for part in re.findall(_PART, match[1])), match[2])

    @property
    def run_id(self) -> str | None:
        """Return the id of the run, if the path names one."""
        return self.when if self.when is not None and _RUN.fullmatch(self.when) else None

    def schema(self) -> str:
        """Return the schema's name, as Spark SQL takes it."""
        return ".".join(map(quote_identifier, self.parts))

    def table(self, name: str) -> str:
        """Return the name of a table of the schema, as Spark SQL takes it."""
        return f"{self.schema()}.{quote_identifier(name)}"

    def __str__(self) -> str:
        suffix = "" if self.when is None else f"@{self.when}"
        return f"{PREFIX}{'.'.join(map(_short, self.parts))}{suffix}"

    def at(self, when: str) -> str:
        """Return this place at another time, or one run of it."""
        return str(self._replace(when=when))


def is_catalog_path(text: str) -> bool:
    """Return whether a text names tables of a catalog, not a folder.

    Raises:
        InputError: a path has a login in it: it would be in Spark's plans and in its event log.
    """
    if is_login(text):
        raise InputError(
            f"path {mask_address(text)}: has a login before its @; leave it out, and set it in "
            "Spark's configuration, such as spark.hadoop.fs.s3a.access.key"
        )
    return text.startswith(PREFIX)


def _unquote(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def quote_identifier(name: str) -> str:
    """Return a name as Spark SQL takes it, whatever is in it."""
    return "`{}`".format(name.replace("`", "``"))


def _short(part: str) -> str:
    return part if re.fullmatch(r"[^.`@/\s]+", part) else quote_identifier(part)
