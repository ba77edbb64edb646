"""The reader of the documents itself: it sees what is wrong, and passes over nothing."""

from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks_of
from tests.docs.reader import Reader, check_without_running


def _blocks(folder: Path, text: str) -> list[Block]:
    (folder / "page.md").write_text(text)
    return blocks_of(folder / "page.md")


def _read(blocks: list[Block], folder: Path) -> None:
    reader = Reader(folder, lambda: "127.0.0.1:1")
    for block in blocks:
        reader.read(block)
    reader.nothing_left("the end")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("# A\n\n    kassign-spark --version\n", "page.md:3: an indented block"),
        ("```\nx\n```\n", "page.md:1: a block of kind ''"),
        ("a\n\n```bash\nx\n```\n", "page.md:3: a block of kind 'bash'"),
        ("<!-- not run: no YARN -->\n\ntext\n", "page.md:3: a block should follow"),
        ("<!-- not run: no YARN -->\n", "a block should follow the marker at the end"),
        ("<!-- not run: -->\n```console\n$ x\n```\n", "page.md:1: HTML that is not"),
        ("<!-- todo -->\n", "page.md:1: HTML that is not"),
    ],
)
def test_a_document_with_a_block_of_no_known_kind(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        _blocks(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("```console\n$ kassign-spark --version\nkassign-spark 9\n```\n", "kassign-spark 0"),
        ("```console\n$ kassign-spark --version\n```\n", "printed:\nkassign-spark 0"),
        ("```console\n$ kassign-spark assing\n...\n```\n", "exit code 2"),
        ("```console\n$ kassign-spark assing\n...\n$ echo $?\n1\n```\n", r"echo \$\?"),
        ("```console\n$ kassign-spark --version | head\n...\n```\n", "one plain command"),
        ("```console\n$ rm -r build\n```\n", "mark it"),
        ("```console\nkassign-spark --version\n```\n", "output without a command"),
        ("```python\nprint(1)\n```\n", "printed, but not shown"),
        ("```python\nprint(1)\n```\n```text\n2\n```\n", "printed:\n1"),
        ("```text\n2\n```\n", "no Python block before it"),
    ],
)
def test_a_document_that_shows_something_else(tmp_path: Path, text: str, error: str) -> None:
    blocks = _blocks(tmp_path, text)
    with pytest.raises(AssertionError, match=error):
        _read(blocks, tmp_path)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("kassign-spark assign a --output b --assigner range", "unrecognized arguments"),
        ("spark-submit --master yarn kassign_spark/__main__.py snapshot", "--output"),
        ("spark-submit --properties-file conf/x.conf kassign_spark/__main__.py", "does not exist"),
        ("make everything", "make everything"),
        ("rm -r build", "unknown program"),
    ],
)
def test_commands_that_are_not_run(command: str, error: str) -> None:
    with pytest.raises(AssertionError, match=error):
        check_without_running(Block("page.md:1", "console", f"$ {command}\n", "no YARN"))


def test_what_is_as_shown(tmp_path: Path) -> None:
    text = (
        "```console\n$ kassign-spark --version\nkassign-spark ...\n$ kassign-spark assign a \\\n"
        "    --output b --show x\nkassign-spark: error: ...\n$ echo $?\n2\n"
        "$ cat build/f.txt\na\n...\nd\n```\n"
        "```python\nx = 1\n```\n```python\nprint('build/f', x)\n```\n```text\nbuild/f 1\n```\n"
        "<!-- not run:\n   no YARN -->\n```console\n$ make test\n```\n"
        "```toml\nbatches = 3\n```\n```yaml\n- {kind: topic_disappears, topic: t}\n```\n"
    )
    (tmp_path / "f.txt").write_text("a\nb\nc\nd\n")
    blocks = _blocks(tmp_path, text)
    _read(blocks, tmp_path)
    assert [block.not_run for block in blocks if block.not_run] == ["no YARN"]
