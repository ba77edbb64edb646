"""What py4j has been told of Java's names, kept for the rest of a run.

PySpark asks for the class and the method again at every call of a function, and for a name that it
has imported with a star Java searches all of its jars, package after package. Without that five
files of tests took 75 s of Java's processor time instead of 81.
"""

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView


def keep_java_names() -> None:
    """Ask for each name once, in this process."""
    for kind in (JVMView, JavaPackage, JavaClass):
        kind.__getattr__ = _keeping(kind.__getattr__)


def _keeping(ask: Any) -> Any:
    def answer(of: Any, name: str) -> Any:
        result = ask(of, name)
        # Else it is the value of a static field, which is no name and may change.
        if isinstance(result, JavaMember | JavaPackage | JavaClass):
            vars(of)[name] = result
        return result

    return answer
