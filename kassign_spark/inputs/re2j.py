r"""A regex that the broker resolves (KIP-848, ``SubscriptionPattern``), read as RE2/J reads it.

RE2/J is Google's RE2 written again in Java, and RE2 itself is in pyarrow: an engine of the same
syntax and, like RE2/J, of linear time. They differ in the words of a refusal and in corners of the
syntax: a repetition behind a literal ``{``, ``\C``, names of groups, scripts of Unicode, an open
``\Q``, an escaped letter outside ASCII. So a regex is first read here by the rules of RE2/J 1.8,
which Kafka 4.4.0 uses (``com.google.re2j.Parser``); what is fit is written for RE2 in a form that
leaves no corner. RE2 alone refuses repetitions that multiply to more than 1,000, and programs of
more than 8 MiB. Their tables of Unicode are of different age, which no topic's name can meet: Kafka
allows letters of ASCII alone.

Nothing here knows Spark.
"""

import re
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.limits import PATTERN_CHARACTERS

READ_OTHERWISE = r"\\[0-7][0-7]|\[[^\]]*(\[|&&)|\{([0-9]+,)?0[0-9]|\(\?[a-zA-Z-]*\)[*+?{]"
"""Finds, in a regex that both take, what java.util.regex may read in another way than RE2/J: octal
numbers (there references), a class or ``&&`` in a class, counts with leading zeros, repetitions of
what stands before a group of flags."""

_UNICODE_NAMES = """
    Any C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So
    Z Zl Zp Zs
    Arabic Armenian Avestan Balinese Bamum Batak Bengali Bopomofo Brahmi Braille Buginese Buhid
    Canadian_Aboriginal Carian Cham Cherokee Common Coptic Cuneiform Cypriot Cyrillic Deseret
    Devanagari Egyptian_Hieroglyphs Ethiopic Georgian Glagolitic Gothic Greek Gujarati Gurmukhi Han
    Hangul Hanunoo Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi
    Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kayah_Li Kharoshthi Khmer Lao Latin
    Lepcha Limbu Linear_B Lisu Lycian Lydian Malayalam Mandaic Meetei_Mayek Mongolian Myanmar
    New_Tai_Lue Nko Ogham Ol_Chiki Old_Italic Old_Persian Old_South_Arabian Old_Turkic Oriya Osmanya
    Phags_Pa Phoenician Rejang Runic Samaritan Saurashtra Shavian Sinhala Sundanese Syloti_Nagri
    Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Tamil Telugu Thaana Thai Tibetan Tifinagh
    Ugaritic Unknown Vai Yi
"""
_UNICODE = frozenset(_UNICODE_NAMES.split())
_CLASSES = "alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit"
_NAMED = frozenset(_CLASSES.split())

_FLAGS = re.compile(r"\(\?[imsU]*(?:-[imsU]+)?([:)])")
_CAPTURE = re.compile(r"\(\?P?<")
_REPEAT = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}")
_HEX = re.compile(r"\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))")
_OCTAL = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})")
_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_MOST_REPEATS, _LAST_CHARACTER = 1000, 0x10FFFF

_ESCAPE, _RANGE = "invalid escape sequence", "invalid character class range"


class _RefusedError(Exception):
    """RE2/J refuses the regex; the text is its description."""


class _Piece(NamedTuple):
    """A piece of a regex: its form for RE2, and where the next one begins."""

    text: str
    end: int


def problem(regex: str) -> str | None:
    """Explain why a regex cannot be resolved; None: it can.

    Returns:
        In the words of RE2/J what the broker refuses it for, with the error that its client gets;
        or what is not resolved here though the broker takes it.
    """
    if not regex:
        return "is empty, which to the broker is not a regex: leave it null"
    if len(regex) > PATTERN_CHARACTERS:
        return f"is not resolved here: it has more than {PATTERN_CHARACTERS:,} characters"
    try:
        # RE2 reads it; pyarrow has no other way to ask.
        pc.match_substring_regex(pa.array([""]), for_re2(regex))
    except _RefusedError as refused:
        return f"the broker refuses it (INVALID_REGULAR_EXPRESSION): {refused}"
    except pa.ArrowInvalid as refused:
        reason = str(refused).removeprefix("Invalid regular expression: ")
        return f"is not resolved here: RE2 takes less than the broker's RE2/J ({reason})"
    return None


def matching(regex: str, names: pa.StringArray) -> pa.StringArray:
    """Find the names that a regex matches as a whole; none where ``problem`` has something."""
    if len(regex) > PATTERN_CHARACTERS:
        return names.slice(0, 0)
    try:
        is_match = pc.match_substring_regex(names, for_re2(regex))
    except (_RefusedError, pa.ArrowInvalid):
        return names.slice(0, 0)
    return names.filter(is_match)


def for_re2(regex: str) -> str:
    """Write a regex of RE2/J's for RE2, so that it finds the whole names that RE2/J matches.

    Raises:
        _RefusedError: RE2/J refuses it.
    """
    pieces: list[str] = []
    names: set[str] = set()
    depth, position = 0, 0
    has_argument = is_repeated = False
    while position < len(regex):
        char, begins_repeat = regex[position], False
        if char == "(":
            piece, opens = _read_opening(regex, position, names)
            depth += opens
            has_argument &= not opens
        elif char == "|":
            piece, has_argument = _Piece("|", position + 1), False
        elif char == ")":
            if not depth:
                raise _RefusedError("regexp/syntax: internal error")  # its words for that
            piece, depth, has_argument = _Piece(")", position + 1), depth - 1, True
        elif char in "*+?{":
            repeat, begins_repeat = _repeat(regex, position), True
            if repeat is not None and is_repeated:
                raise _RefusedError("invalid nested repetition operator")
            if repeat is not None and not has_argument:
                raise _RefusedError("missing argument to repetition operator")
            # A brace that is no repetition is itself; yet what follows counts as nested.
            piece = repeat or _Piece(r"\{", position + 1)
            has_argument = True
        else:
            piece = _atom(regex, position)
            has_argument |= bool(piece.text)
        pieces.append(piece.text)
        position, is_repeated = piece.end, begins_repeat
    if depth:
        raise _RefusedError("missing closing )")
    return rf"\A(?:{''.join(pieces)})\z"


def _read_opening(regex: str, position: int, names: set[str]) -> tuple[_Piece, bool]:
    """Read a bracket with what makes it special, and whether it opens a group.

    What is captured does not matter, so no group is left with a name.
    """
    if not regex.startswith("(?", position):
        return _Piece("(?:", position + 1), True
    capture = _CAPTURE.match(regex, position)
    if capture is None:
        flags = _FLAGS.match(regex, position)
        if flags is None:
            raise _RefusedError("invalid or unsupported Perl syntax")
        text = "" if flags[0] == "(?)" else flags[0]
        return _Piece(text, flags.end()), flags[1] == ":"
    end = regex.find(">", capture.end())
    name = regex[capture.end() : end]
    if end < 0 or not re.fullmatch("[0-9A-Za-z_]+", name):
        raise _RefusedError("invalid named capture")
    if name in names:
        raise _RefusedError("duplicate capture group name")
    names.add(name)
    return _Piece("(?:", end + 1), True


def _repeat(regex: str, position: int) -> _Piece | None:
    """Read a repetition, greedy or not; None: a brace that begins none."""
    end, text = position + 1, regex[position]
    if text == "{":
        counts = _REPEAT.match(regex, position)
        if counts is None:
            return None
        least, most = int(counts[1]), int(counts[3] or counts[1])
        if not least <= most <= _MOST_REPEATS:
            raise _RefusedError("invalid repeat count")
        end, text = counts.end(), counts[0]
    if regex.startswith("?", end):
        return _Piece(f"{text}?", end + 1)
    return _Piece(text, end)


def _atom(regex: str, position: int) -> _Piece:
    """Read what is neither a bracket nor a repetition: a character, a class, a place."""
    char = regex[position]
    if char == "[":
        return _class(regex, position)
    if char in "^$.":
        return _Piece(char, position + 1)
    if char != "\\":
        return _Piece(_quote(ord(char)), position + 1)
    escaped = regex[position + 1 : position + 2]
    if escaped and escaped in "AbBz":
        return _Piece(regex[position : position + 2], position + 2)
    if escaped == "Q":
        quoted, ends, _ = regex[position + 2 :].partition(r"\E")
        text = "".join(_quote(ord(c)) for c in quoted)
        return _Piece(text, position + 2 + len(quoted) + len(ends))
    return _group(regex, position) or _character(regex, position)[0]


def _class(regex: str, position: int) -> _Piece:
    """Read a class in brackets."""
    first = position + 2 if regex.startswith("^", position + 1) else position + 1
    pieces, position = [regex[position:first]], first
    while not regex.startswith("]", position) or position == first:
        piece = _read_named_class(regex, position) or _group(regex, position)
        if piece is None:
            piece, low = _character(regex, position)
            if regex.startswith("-", piece.end) and not regex.startswith("-]", piece.end):
                last, high = _character(regex, piece.end + 1)
                if high < low:
                    raise _RefusedError(_RANGE)
                piece = _Piece(f"{piece.text}-{last.text}", last.end)
        pieces.append(piece.text)
        position = piece.end
    return _Piece("".join([*pieces, "]"]), position + 1)


def _read_named_class(regex: str, position: int) -> _Piece | None:
    """Read a class such as ``[:alpha:]``, which stands in a class; None: there is none."""
    end = regex.find(":]", position) if regex.startswith("[:", position) else -1
    if end < 0:
        return None
    # The first colon may be the last: [:] is looked at as a name too.
    if end < position + 2 or regex[position + 2 : end].removeprefix("^") not in _NAMED:
        raise _RefusedError(_RANGE)
    return _Piece(regex[position : end + 2], end + 2)


def _group(regex: str, position: int) -> _Piece | None:
    r"""Read a class such as ``\d`` or ``\p{Lu}``; None: there is none."""
    escaped = regex[position + 1 : position + 2] if regex.startswith("\\", position) else ""
    if escaped and escaped in "dDsSwW":
        return _Piece(regex[position : position + 2], position + 2)
    if not escaped or escaped not in "pP":
        return None
    end = position + 3
    name = regex[position + 2 : end]
    if name == "{":
        end = regex.find("}", end) + 1
        name = regex[position + 3 : end - 1] if end else ""
    if name.removeprefix("^") not in _UNICODE:
        raise _RefusedError(_RANGE)
    return _Piece(regex[position:end], end)


def _character(regex: str, position: int) -> tuple[_Piece, int]:
    """Read one character, which may be escaped, and say which it is."""
    if position >= len(regex):
        raise _RefusedError("missing closing ]")
    if regex[position] != "\\":
        return _Piece(_quote(ord(regex[position])), position + 1), ord(regex[position])
    if position + 1 == len(regex):
        raise _RefusedError("trailing backslash at end of expression")
    escaped, end = regex[position + 1], position + 2
    code = ord(escaped)
    if number := _HEX.match(regex, position):
        code, end = int(number[1] or number[2], 16), number.end()
    elif number := _OCTAL.match(regex, position):
        code, end = int(number[1], 8), number.end()
    elif escaped in _CONTROL:
        code = _CONTROL[escaped]
    elif escaped.isascii() and escaped.isalnum():
        raise _RefusedError(_ESCAPE)
    if code > _LAST_CHARACTER:
        raise _RefusedError(_ESCAPE)
    return _Piece(_quote(code), end), code


def _quote(code: int) -> str:
    """Write a character that stands for itself, inside a class and outside."""
    char = chr(code)
    return char if char.isascii() and (char.isalnum() or char in "_/ ,:") else rf"\x{{{code:x}}}"
