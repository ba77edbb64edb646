"""The rooms of the package: each imports from those below it only, and no two files in a circle."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "kassign_spark"
LAYERS = [
    {"client_libraries", "display", "expressions", "interrupts", "processes"},
    {"errors"},
    {"limits"},
    {"spark"},
    {"schemas"},
    {"conforming"},
    {"results"},
    {"inputs"},
    {"settings"},
    {"client", "engine"},
    {"coordinator"},
    {"groups"},
    {"graph"},
    {"assignors"},
    {"plans"},
    {"measures"},
    {"validation"},
    {"whatif"},
    {"simulation"},
    {"brokers", "tables"},
    {"producer"},
    {"live"},
    {"log"},
    {"history"},
    {"launch", "report"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
"""From low to high; of one layer, none imports from another."""

_LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}


def _modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        yield ".".join(parts), path


def _imported(path: Path, modules: set[str]) -> Iterator[str]:
    """Modules of the package that a file imports, at its top or later."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kassign_spark."):
            module = (node.module or "").removeprefix("kassign_spark.")
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                if inner in modules:
                    yield inner
                else:
                    yield module if module in modules else f"{module}.__init__"


_PATHS = dict(_modules())
IMPORTS = {
    name: set(_imported(path, set(_PATHS))) for name, path in _PATHS.items() if name != "__init__"
}


def test_every_room_has_its_place() -> None:
    rooms = {name.split(".")[0] for name in IMPORTS}
    assert rooms == set(_LEVEL)


def test_no_room_imports_from_one_that_is_not_below_it() -> None:
    upward = [
        (name, other)
        for name, imported in IMPORTS.items()
        for other in imported
        if name.split(".")[0] != other.split(".")[0]
        and _LEVEL[other.split(".")[0]] >= _LEVEL[name.split(".")[0]]
    ]
    assert upward == []


def test_no_files_import_each_other_in_a_circle() -> None:
    # Raises CycleError, which names the files.
    assert list(TopologicalSorter(IMPORTS).static_order())


def test_the_package_itself_imports_no_room() -> None:
    """Or each task and each command would import them all."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    imported = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert imported == {"importlib", "typing"}


def test_each_folder_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("__init__.py")
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def test_no_two_files_share_a_name() -> None:
    counts = Counter(path.name for path in PACKAGE.rglob("*.py"))
    assert [name for name, count in counts.items() if count > 1] == ["__init__.py"]


VAGUE = {"found", "given", "told", "said", "held", "wanted", "ours", "which", "what"}
"""Words that describe a gesture: a value's name is a noun that says what it is."""


def test_values_have_nouns_for_names() -> None:
    """No variable, argument, attribute, function or file has a name that says nothing of it."""
    vague = [
        f"{path}:{node.lineno}: {name}"
        for path in _all_files()
        for node in ast.walk(ast.parse(path.read_text()))
        for name in _defined(node)
        if name.strip("_").lower() in VAGUE
    ]
    assert vague == []
    assert {path.stem for path in _all_files()} & VAGUE == set()


def _all_files() -> list[Path]:
    """Return the files of the package and of the tests."""
    return sorted([*PACKAGE.rglob("*.py"), *Path(__file__).parent.rglob("*.py")])


def _defined(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return [name]
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
            return [name]
    return []


def test_docstrings_are_text() -> None:
    """Half a character in one would keep Python 3.13 from compiling the file."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    assert text.encode(), path


_NO_VERB = re.compile(
    "A|All|An|Another|Any|Between|By|Each|Every(body|thing)|How|In|It|Least|Like|More|Most|No|Not|"
    "Nobody|Nothing|Null|One|Only|Some|The|These|This|Those|Two|What|Whether|Which|Who|Whole|Why|"
    r"\w*[^s]s|.*\W.*"
)
"""What a docstring may not begin with; no verb in the imperative ends with one s."""


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    """But of properties, which are named for what they are."""
    others = []
    for path in _PATHS.values():
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            first = (ast.get_docstring(node) or "Return").split()[0].rstrip(",:;")
            is_property = any("property" in ast.unparse(mark) for mark in node.decorator_list)
            if not is_property and _NO_VERB.fullmatch(first):
                others.append(f"{path.name}: {node.name}: {first}")
    assert others == []
