"""Secrets out of command lines, on the node, before anything is kept or sent.

Works on the argument list, because there a value's borders are known; inside of an argument (a shell script, a
URL, JSON, a process title) by patterns. Every rule has a row with examples in docs/scrubbing.md. Hiding a
harmless value now and then is accepted, showing a secret is not; a program, its script and its harmless options
stay readable. Time is linear in the text, which is cut first: only the beginning is ever shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpuherd.collect.secret_shapes import HIDDEN, PROGRAM_FLAGS, TOKEN_SHAPES, FlagStyle, is_secret_name

__all__ = ["HIDDEN", "LONGEST_TEXT", "RULES", "scrub"]

LONGEST_TEXT = 4_096
"""Characters of a command line that are looked at; several times what is shown."""

DEEPEST_SCRIPT = 4
"""Commands within commands that are looked into; what is deeper is hidden."""

RULES = ("flag", "assignment", "header", "url", "token", "after_word", "program")
"""The names of the rules, as docs/scrubbing.md lists them."""

_FLAG = re.compile(r"(--?[A-Za-z][\w.\-]{0,63}+|\+{0,2}[A-Za-z_][\w.\-]{0,63}+)=(.*)\Z", re.DOTALL)
_BARE_FLAG = re.compile(r"--?[A-Za-z][\w.\-]{0,63}+\Z")
_HEADER = re.compile(r"([A-Za-z][\w\-]{0,63}+):\s*+(.+)\Z", re.DOTALL)
_NEXT_OPTION = re.compile(r"(?:--[a-z][a-z0-9_.\-]*+(?:=|\Z)|-[A-Za-z]\Z)")
"""An option as people usually name them; anything else after ``--password`` is a password, with dashes or not."""
_SNAKE_NAME = re.compile(r"[a-z0-9]++(?:_[a-z0-9]++)++\Z")
_SHORT_FLAGS = re.compile(r"-[A-Za-z#0-9]{2,8}+\Z")
_INNER_OPTION = re.compile(r"\s--?[A-Za-z]")  # a command within an argument: ssh host "train --token x"
_WORDS = re.compile(r"\S++|\s++")

_ASSIGNED = re.compile(
    r"(?<![\w.\-])(-{0,2}+[A-Za-z_][\w.\-]{0,63}+)(\\?[\"']?+\]?+\s{0,4}+(?:=|:(?!//))>?\s{0,4}+)"
    r"(\\?\"(?:[^\"\\]|\\.)*+\\?\"?+|'[^']*+'?+|[^\s\"'&;|]++)"
)
_SCHEME_WORD = re.compile(r"(?i)\b(bearer|basic|digest|negotiate)(\s++|%20|\+)([^\s\"',;]{4,}+)")
# A password may hold an unescaped "/" or "@": everything up to the last "@" goes, unless the part before it is a
# host with a path (https://host/repo@v1).
_URL_USER = re.compile(r"(?i)(?<![a-z0-9])([a-z][a-z0-9+.\-]{1,20}+://)([^\s/?#\"']*+)")
_URL_SLASHED = re.compile(r"(?i)(://)([^\s/:@\"']{1,128}+:[^\s@\"']{0,256}+)@")
_AFTER_WORD = re.compile(r"(?i)(?:login|log-in|auth|authenticate|token|password|secret|apikey|api-key|key)\Z")
_LONG_VALUE = re.compile(r"[A-Za-z0-9+/_=.\-]{16,}+\Z")
_QUOTES = ("'", '"')
_SCRIPT_FLAGS = frozenset({"-c", "-lc", "-ic", "-ec", "-xc", "-lic", "--command", "-e"})


def scrub(arguments: Sequence[str]) -> list[str]:
    """Hide the secrets in an argument list; the list keeps its length unless it was too long to look at.

    Never raises, whatever the text is. What lies beyond ``LONGEST_TEXT`` characters is dropped together with
    the word that the cut went through, so that no half of a secret escapes its pattern.
    """
    kept, was_cut = _cut(arguments)
    scrubbed = _scrub_arguments(kept, depth=0)
    return [*scrubbed, "…"] if was_cut else scrubbed


def _cut(arguments: Sequence[str]) -> tuple[list[str], bool]:
    kept: list[str] = []
    room = LONGEST_TEXT
    for argument in arguments:
        if len(argument) >= room:
            words = argument[:room].rsplit(None, 1)
            # A single giant word is left out altogether; of a long text the last, damaged word is.
            return ([*kept, words[0]] if len(words) == 2 else kept), True
        kept.append(argument)
        room -= len(argument) + 1
    return kept, False


def _scrub_arguments(arguments: Sequence[str], depth: int) -> list[str]:
    """Apply the rules that need the borders between arguments, then the patterns within each.

    ``depth`` counts the commands around this one: ``sh -c "ssh host 'train x'"``.
    """
    result: list[str] = []
    hide_next = hide_all = False
    is_script_next = True  # a first argument with spaces is a title that the process gave itself
    after_word = False
    flags: dict[str, FlagStyle] = {}
    for argument in arguments:
        if hide_next and not _NEXT_OPTION.match(argument):
            result.append(HIDDEN)
            hide_next, after_word = hide_all, False
            continue
        hide_next = hide_all = False
        is_script = is_script_next and " " in argument
        is_script_next = argument in _SCRIPT_FLAGS
        if after_word and _LONG_VALUE.match(argument):
            result.append(HIDDEN)
            after_word = False
            continue
        after_word = _is_word_before(argument) or (after_word and argument.startswith("-"))
        program = argument.rsplit("/", 1)[-1]
        if program in PROGRAM_FLAGS:
            flags = PROGRAM_FLAGS[program]
        style, shown = _program_flag(argument, flags)
        if style is not None:
            hide_next, hide_all = style in ("next", "all"), style == "all"
            result.append(shown)
        elif is_script:
            result.append(_scrub_script(argument, depth))
        elif _BARE_FLAG.match(argument) and is_secret_name(argument):
            hide_next = True
            result.append(argument)
        else:
            result.append(_scrub_whole(argument, depth))
    return result


def _program_flag(argument: str, flags: dict[str, FlagStyle]) -> tuple[FlagStyle | None, str]:
    for flag, style in flags.items():
        if argument == flag:
            return (None if style == "attached" else "all" if style == "all" else "next"), argument
        if style == "either" and _SHORT_FLAGS.match(argument) and argument[-1] == flag[-1]:
            return "next", argument  # several short options in one, as in curl -sSu
        if flag.startswith("--") and argument.startswith(f"{flag}="):
            return "attached", f"{flag}={HIDDEN}"
        if (
            style in ("attached", "either")
            and argument.startswith(flag)
            and len(flag) == 2
            and not argument.startswith("--")
        ):
            return "attached", flag + HIDDEN
    return None, argument


def _is_word_before(argument: str) -> bool:
    """Tell whether a long value after this word is a secret: ``login X``, ``set aws_secret_access_key X``."""
    return _AFTER_WORD.match(argument) is not None or (
        _SNAKE_NAME.match(argument) is not None and is_secret_name(argument)
    )


def _scrub_whole(argument: str, depth: int) -> str:
    """Treat one argument: ``name=value`` and ``Header: value`` to its end, anything else by patterns."""
    assigned = _FLAG.match(argument)
    if assigned and is_secret_name(assigned[1]):
        return f"{assigned[1]}={HIDDEN}" if assigned[2] else argument
    header = _HEADER.match(argument)
    if header and is_secret_name(header[1]) and not header[2].startswith("//"):
        return f"{header[1]}: {HIDDEN}"
    return _scrub_script(argument, depth) if _INNER_OPTION.search(argument) else _scrub_text(argument)


def _scrub_script(script: str, depth: int) -> str:
    """Treat a shell script or process title: its words are arguments, and a quoted value may span several."""
    if depth >= DEEPEST_SCRIPT:
        return HIDDEN
    # Without its own quotes: with them it would be one word, and that word the same script again.
    quote = script[:1] if script[:1] in _QUOTES else ""
    end = quote if quote and len(script) > 1 and script.endswith(quote) else ""
    inner = script[len(quote) : len(script) - len(end)]
    words = [word for word in _WORDS.findall(_scrub_text(inner)) if not word.isspace()]
    return quote + " ".join(_scrub_arguments(_join_quoted(words), depth + 1)) + end


def _join_quoted(words: list[str]) -> list[str]:
    joined: list[str] = []
    quote = ""
    for word in words:
        if quote:
            joined[-1] += " " + word
            quote = "" if word.endswith(quote) else quote
            continue
        joined.append(word)
        opening = word[:1] if word[:1] in _QUOTES else ""
        if opening and not (len(word) > 1 and word.endswith(opening)):
            quote = opening
    return joined


def _hide_assigned(match: re.Match[str]) -> str:
    name, separator, value = match.groups()
    if not is_secret_name(name):
        # The value may itself be an assignment (``env=TOKEN=x``, ``-e A=TOKEN=x``); look into it once more.
        return f"{name}{separator}{_ASSIGNED.sub(_hide_inner, value)}"
    return f"{name}{separator}{HIDDEN}"


def _hide_inner(match: re.Match[str]) -> str:
    name, separator, _ = match.groups()
    return f"{name}{separator}{HIDDEN}" if is_secret_name(name) else match[0]


def _hide_user(match: re.Match[str]) -> str:
    scheme, authority = match.groups()
    user, at, host = authority.rpartition("@")
    return f"{scheme}{HIDDEN}@{host}" if at and user else match[0]


def _scrub_text(text: str) -> str:
    if "://" in text:
        text = _URL_USER.sub(_hide_user, text)
        text = _URL_SLASHED.sub(_hide_slashed, text)
    for shape in TOKEN_SHAPES.values():
        text = shape.sub(HIDDEN, text)
    text = _SCHEME_WORD.sub(rf"\1\2{HIDDEN}", text)
    if "=" in text or ":" in text:
        text = _ASSIGNED.sub(_hide_assigned, text)
    return text


def _hide_slashed(match: re.Match[str]) -> str:
    user, _, rest = match[2].partition(":")
    port, slash, _ = rest.partition("/")
    if user == HIDDEN or (slash and port.isdigit()):
        return match[0]  # already hidden, or host:port/path@revision
    return f"{match[1]}{HIDDEN}@"
