"""Hostile text, numbers and values, and whole fleets of them."""

from hypothesis import strategies as st

# Names that have made something go wrong somewhere: separators, quotes, line ends, characters
# beyond the BMP, private use (which Java and Spark order otherwise), right-to-left, NUL, blanks.
_ODD = (
    " ",
    "a b",
    "a,b",
    "a;b",
    'say "hi"',
    "it's",
    "back\\slash",
    "`tick`",
    "[x]",
    '["a"]',
    "{}",
    "a\nb",
    "a\r\nb",
    "tab\there",
    "\u2028",
    "\x00",
    "\x85",
    "null",
    "\ufeff",
    "\uffee",
    "\U0001f600",
    "消费者",
    "\u202eabc",
    "e\u0301",
    "%s %d",
    "$1",
    "../x",
    "x" * 300,
)


def names() -> st.SearchStrategy[str]:
    """Text that is a possible name: not empty."""
    free = st.text(min_size=1, max_size=12)
    return st.sampled_from(_ODD) | free | st.text("ab0.-_", min_size=1, max_size=4)


def topic_names() -> st.SearchStrategy[str]:
    """Names that Kafka allows a topic; others are refused."""
    free = st.text("abAB09._-", min_size=1, max_size=12).filter(lambda name: name.strip(".") != "")
    return st.sampled_from(["null", "-", "_", "x" * 249, "1e5", "a.b", "a_b"]) | free


def text() -> st.SearchStrategy[str]:
    """Any text, also none."""
    return st.just("") | names() | st.text(max_size=60)


def escaped_text() -> st.SearchStrategy[str]:
    """Text of a file's value, which may escape half a surrogate pair."""
    return text() | st.text(st.characters(codec=None), max_size=5)


def whole_numbers() -> st.SearchStrategy[int]:
    """Numbers around every limit, and far beyond."""
    limits = [0, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -1, -(2**31), -(2**63), 10**50]
    return st.sampled_from(limits) | st.integers(-3, 50) | st.integers()


def values() -> st.SearchStrategy[object]:
    """Any value that JSON can hold."""
    plain = (
        st.none()
        | st.booleans()
        | whole_numbers()
        | st.floats()
        | escaped_text()
        | st.lists(names(), max_size=3)
    )
    return st.recursive(
        plain,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(escaped_text(), inner, max_size=3)
        ),
        max_leaves=8,
    )
