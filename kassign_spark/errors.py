"""Every error that kassign_spark raises on purpose, under one base class."""

from kassign_spark.display import printable


class KassignError(Exception):
    """Base of all errors of this package; its text is one clear message for a person.

    It is one line, whatever names and values are in it: what is not printable is escaped.
    """

    def __str__(self) -> str:
        return printable(super().__str__())

    def _render_traceback_(self) -> list[str]:
        """Return the message for IPython: the traceback lies inside this package."""
        return [f"{type(self).__name__}: {self}"]


class SchemaError(KassignError):
    """A table lacks columns or has columns of the wrong type."""


class InputError(KassignError):
    """A table's values, an assignor's name or a path cannot be used; the text says which."""


class SettingsError(KassignError):
    """A setting is unknown or its value is out of range."""


class OutputError(KassignError):
    """The output folder cannot be written or already exists."""


class ClusterError(KassignError):
    """The live Kafka cluster cannot be reached or read."""


class SessionError(KassignError):
    """Spark behind the session does not answer, or cannot do what it was asked to."""


class WorkerError(KassignError):
    """Spark's Python workers cannot import what they need; the text names the interpreter."""


class NotConvergedError(KassignError):
    """The limit of rounds was reached; the text says what is unfinished. There is no result."""
