"""C++ files of a recorded session, as its writes and edits leave them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

SUFFIXES = (".cpp", ".cc", ".h", ".hpp", ".inc", ".asc")
NUMBERED = re.compile(r"^ *\d+(?:\t|\u2192)", re.M)  # what is read of a file has its lines numbered
_HEREDOC = re.compile(
    r"cat\s*(?:>\s*(?P<before>[^\s<>|&;]+)\s*)?<<-?\s*(?P<quote>['\"]?)(?P<word>\w+)(?P=quote)"
    r"(?:\s*>\s*(?P<after>[^\s<>|&;]+))?[^\n]*\n(?P<text>.*?)\n(?P=word)[ \t]*(?=\n|$)",
    re.DOTALL,
)
_CHANGES = re.compile(
    r"\bsed\s+(?:-\w+\s+)*-i|\bperl\s+-\w*i|\bpatch\b|\.write\(|write_text\(|\btee\b|\bgit\b"
)
_COPY = re.compile(r"\b(?:cp|mv)\s+(?:-\w+\s+)*(?P<source>[^\s;&|]+)\s+(?P<target>[^\s;&|]+)")


class SessionFiles:
    """Replays what tools did to C++ files, and knows which files it can no longer be sure of."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._doubtful: set[str] = set()

    def sources(self) -> dict[str, str]:
        """Return the text of each file by its path."""
        return dict(self._texts)

    def doubtful(self) -> tuple[str, ...]:
        """Return the files that were changed in a way that was not replayed."""
        return tuple(sorted(self._doubtful))

    def apply(self, tool: str, arguments: dict[str, Any], result: str) -> None:
        """Replay one call of a tool.

        Args:
            tool: its name.
            arguments: what it was called with.
            result: what it returned.
        """
        if result.lstrip().startswith("<tool_use_error>"):
            return
        if tool == "Bash":
            self._shell(str(arguments.get("command", "")))
        path = str(arguments.get("file_path", ""))
        if not path.endswith(SUFFIXES):
            return
        if tool == "Write":
            self._set(path, str(arguments.get("content", "")))
        elif tool == "Edit":
            self._edit(path, [arguments])
        elif tool == "MultiEdit":
            self._edit(path, [one for one in arguments.get("edits", ()) if isinstance(one, dict)])
        elif tool == "Read" and not arguments.get("offset") and not arguments.get("limit"):
            self._seen(path, result)

    def _set(self, path: str, text: str) -> None:
        self._texts[path] = text
        self._doubtful.discard(path)

    def _edit(self, path: str, edits: list[dict[str, Any]]) -> None:
        text = self._texts.get(path)
        if text is None:
            return  # a file that was there before: what it becomes is seen when it is read
        for edit in edits:
            old, new = str(edit.get("old_string", "")), str(edit.get("new_string", ""))
            if not old or old not in text:
                self._doubtful.add(path)
                return
            text = text.replace(old, new, -1 if edit.get("replace_all") else 1)
        self._texts[path] = text

    def _seen(self, path: str, shown: str) -> None:
        """Take over the text of a file that was read as a whole, if it was changed unseen."""
        lines = shown.split("\n")
        if path in self._doubtful and all(NUMBERED.match(line) for line in lines):
            self._set(path, "\n".join(NUMBERED.sub("", line) for line in lines))

    def _shell(self, command: str) -> None:
        for written in _HEREDOC.finditer(command):
            path = written["before"] or written["after"]
            if not path or not path.endswith(SUFFIXES):
                continue
            path = self._resolved(path, command)
            self._set(path, written["text"] + "\n")
            if not written["quote"] and re.search(r"[$`\\]", written["text"]):
                self._doubtful.add(path)  # the shell would have put in values
        rest = _HEREDOC.sub(lambda found: "" if found["before"] or found["after"] else found[0], command)
        for copied in _COPY.finditer(rest):
            source, target = (self._resolved(copied[name], rest) for name in ("source", "target"))
            if target.endswith(SUFFIXES) and source in self._texts:
                self._set(target, self._texts[source])
        if _CHANGES.search(rest):
            self._doubtful |= {path for path in self._texts if PurePosixPath(path).name in rest}

    def _resolved(self, path: str, command: str) -> str:
        """Return a path of a command as the file tools name it: absolute, or of the one file it can be."""
        path = path.strip("'\"")
        if path.startswith("/"):
            return path
        folder = re.search(r"\bcd\s+(/[^\s;&|]+)", command)
        if folder:
            return str(PurePosixPath(folder[1]) / path)
        known = [one for one in self._texts if one.endswith("/" + path.removeprefix("./"))]
        return known[0] if len(known) == 1 else path
