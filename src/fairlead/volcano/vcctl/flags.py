"""Arguments and help as vcctl's libraries (cobra and pflag) read and print them, because scripts depend on both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PROGRAM = "vcctl"
_GLOBAL = """\
      --log-flush-frequency duration   Maximum number of seconds between log flushes (default 5s)
  -v, --v Level                        number for the log level verbosity
      --vmodule moduleSpec             comma-separated list of pattern=N settings for file-filtered logging \
(only works for the default text log format)
"""
_GLOBAL_NAMES = {"log-flush-frequency": "", "v": "v", "vmodule": ""}


class UsageFault(Exception):
    """Arguments that cannot be read."""


@dataclass(frozen=True, slots=True)
class VcFlag:
    """A flag: `type` is string, int, int32 or empty for a switch."""

    name: str
    short: str
    type: str
    help: str
    default: Any = None

    @property
    def value(self) -> Any:
        """Without being given."""
        empty: Mapping[str, Any] = {"string": "", "": False}
        return self.default if self.default is not None else empty.get(self.type, 0)

    @property
    def left(self) -> str:
        head = f"  -{self.short}, --{self.name}" if self.short else f"      --{self.name}"
        return f"{head} {self.type}" if self.type else head

    @property
    def right(self) -> str:
        if not self.default:
            return self.help
        shown = f'"{self.default}"' if self.type == "string" else self.default
        return f"{self.help} (default {shown})"


@dataclass(frozen=True, slots=True)
class VcCommand:
    """A command with flags, or a group of commands."""

    name: str
    help: str
    flags: Sequence[VcFlag] = ()
    commands: Mapping[str, VcCommand] = field(default_factory=dict)
    verb: str = ""
    """What `Failed to ...` says."""


CONNECTION = (
    VcFlag("kubeconfig", "k", "string", "(optional) absolute path to the kubeconfig file"),
    VcFlag("master", "s", "string", "the address of apiserver"),
)


def parse(command: VcCommand, words: Sequence[str]) -> dict[str, Any] | None:
    """The values of a command's flags by name; None if help is requested. Raises UsageFault."""
    values: dict[str, Any] = {flag.name: flag.value for flag in command.flags}
    by_name = {flag.name: flag for flag in command.flags}
    by_short = {flag.short: flag for flag in command.flags if flag.short}
    left = list(words)
    while left:
        word = left.pop(0)
        if word in ("-h", "--help"):
            return None
        if word.startswith("--"):
            name, equals, text = word[2:].partition("=")
            known = by_name.get(name)
            if known is None and name in _GLOBAL_NAMES:
                known = VcFlag(name, "", "string", "")
            if known is None:
                raise UsageFault(f"unknown flag: --{name}")
        elif word.startswith("-") and len(word) > 1:
            name, text = word[1], word[2:].removeprefix("=")
            equals = "=" if text else ""
            known = by_short.get(name) or (VcFlag("v", "v", "string", "") if name == "v" else None)
            if known is None:
                raise UsageFault(f"unknown shorthand flag: '{name}' in {word}")
        else:
            continue  # words that are no flags are passed over
        values[known.name] = _value(known, word, bool(equals), text, left)
    return values


def _value(flag: VcFlag, word: str, given: bool, text: str, left: list[str]) -> Any:
    if not flag.type:
        return text.lower() in ("1", "t", "true") if given else True
    if not given:
        if not left:
            raise UsageFault(f"flag needs an argument: {_shown(flag, word)}")
        text = left.pop(0)
    if flag.type == "string":
        return text
    try:
        return int(text, 0)
    except ValueError:
        label = f"-{flag.short}, --{flag.name}" if flag.short else f"--{flag.name}"
        why = f'strconv.ParseInt: parsing "{text}": invalid syntax'
        raise UsageFault(f'invalid argument "{text}" for "{label}" flag: {why}') from None


def _shown(flag: VcFlag, word: str) -> str:
    return word if word.startswith("--") else f"'{flag.short}' in {word}"


# ---- help ----


def help_text(path: Sequence[str], command: VcCommand) -> str:
    """What `--help` prints for a command at this path below the program."""
    name = " ".join((PROGRAM, *path))
    usage = f"Usage:\n  {name} {'[command]' if command.commands else '[flags]'}\n"
    parts = [f"{command.help}\n\n{usage}" if path else usage]
    if command.commands:
        width = 11
        listed = [f"  {one.name:<{width}} {one.help}\n" for one in command.commands.values()]
        parts.append("Available Commands:\n" + "".join(listed))
    parts.append(_flags_text(path, command))
    if path:
        parts.append("Global Flags:\n" + _GLOBAL)
    if command.commands:
        parts.append(f'Use "{name} [command] --help" for more information about a command.\n')
    return "\n".join(parts)


def _flags_text(path: Sequence[str], command: VcCommand) -> str:
    if not path:
        return f"Flags:\n  -h, --help                           help for {PROGRAM}\n" + _GLOBAL
    flags = [*command.flags, VcFlag("help", "h", "", f"help for {path[-1]}")]
    width = max(len(flag.left) for flag in flags) + 3
    rows = [f"{flag.left:<{width}}{flag.right}\n" for flag in sorted(flags, key=lambda flag: flag.name)]
    return "Flags:\n" + "".join(rows)


def unknown_command(word: str, names: Sequence[str]) -> str:
    """What is said of a word that is no command, with those that were probably meant."""
    meant = [name for name in names if _distance(word, name) <= 2 or name.startswith(word.lower())]
    text = f'Error: unknown command "{word}" for "{PROGRAM}"\n'
    if meant:
        text += "\nDid you mean this?\n" + "".join(f"\t{name}\n" for name in meant) + "\n"
    return text


def _distance(one: str, other: str) -> int:
    """The number of letters to change, add or drop."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one.lower(), start=1):
        before, row[0] = row[0], i
        for j, against in enumerate(other.lower(), start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != against))
    return row[-1]
