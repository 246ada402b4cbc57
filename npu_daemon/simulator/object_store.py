"""Compiled parts of the simulator, kept by the digest of everything that goes into them.

A part is compiled again only when its source, a header that it includes, the command or the compiler
changed, so that an edit of one file costs the compilation of what depends on it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ascend_gym.core.digest import digest_of
from ascend_gym.core.wheel import compiler_folder
from npu_daemon.own_files import file_digest
from npu_daemon.simulator.compiler import call_tool, clang, compiler_version

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_SIMULATOR = Path(__file__).parent
SHIPPED = _SIMULATOR / "objects"
"""What a wheel with compiled parts has of them (``wheel_hook.py``); others have no such folder."""
_COMPILE_ONLY = "-c"
PRECOMPILED_SUFFIX = ".pch"
DIGEST_SUFFIX = ".sha256"
"""Of the file beside each compiled part that says which bytes it has."""
# A precompiled header is found by its path, and is good as long as the headers in it have the same size. What
# they need of templates is made in it once, and not in each compilation again.
_FOR_PRECOMPILED = ("-fno-pch-timestamp", "-fpch-instantiate-templates")
_PRECOMPILED_OPTIONS = ("-x", "c++-header", *(f"-Xclang={option}" for option in _FOR_PRECOMPILED))


@dataclass(frozen=True)
class Part:
    """One source to compile.

    Attributes:
        options: of the compiler call that say what a source means, and ``-c``. Headers are searched in the
            folders of its ``-I`` options; those found nowhere belong to the compiler.
        source: what is compiled.
        target: the file to make, which must not exist.
        prefix: header read before the source, precompiled once for all parts with the same ``options``.
        code_options: those that only say what code is made of it.
    """

    options: tuple[str, ...]
    source: Path
    target: Path
    prefix: Path | None = None
    code_options: tuple[str, ...] = ()


@dataclass
class ObjectStore:
    """Compiles into a folder that several processes may share.

    Attributes:
        folder: holds the compiled parts; made when the first one is.
        compiler: the call to which options are added; the simulator's own clang if it is empty.
        version: identity of that compiler.
    """

    folder: Path
    compiler: Sequence[str] = ()
    version: str = field(default_factory=compiler_version)
    _texts: dict[Path, bytes] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _making: dict[str, threading.Lock] = field(default_factory=dict)

    def compile_all(self, parts: Iterable[Part]) -> None:
        """Compile parts side by side, in their order.

        Raises:
            InfrastructureError: there is no compiler, or it refuses a source.
        """
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            for made in [pool.submit(self.compile, part) for part in parts]:
                made.result()

    def compile(self, part: Part) -> None:
        """Compile one part.

        Raises:
            InfrastructureError: there is no compiler, or it refuses the source.
        """
        key = self._key(part)
        if (SHIPPED / key).exists():
            shutil.copyfile(SHIPPED / key, part.target)
            return
        if not self._is_whole(key):
            prefix = []
            if part.prefix is not None:
                prefix = ["-include-pch", str(self.precompile(part.options, part.prefix))]
            call = self._call((*part.options, *part.code_options))
            self._make(key, [*call, *prefix, str(part.source)], part.target.name)
        os.link(self.folder / key, part.target)

    def replace(self, part: Part, made: Path) -> None:
        """Keep a file in the place of a compiled part that it was made of, and which it can stand for."""
        key = self._key(part)
        (self.folder / f"{key}{DIGEST_SUFFIX}").write_text(file_digest(made), encoding="ascii")
        shutil.move(made, self.folder / key)

    def is_shipped(self, part: Part) -> bool:
        """Whether the installation brought a part, for processors like this one."""
        return (SHIPPED / self._key(part)).exists()

    def precompile(self, options: Sequence[str], header: Path) -> Path:
        """Return the precompiled form of a header, for compilations with the same options.

        It names the headers that it was made of by their paths, so it is made again where those differ.

        Raises:
            InfrastructureError: there is no compiler, or it refuses the header.
        """
        content = [(str(file), self._texts[file]) for file in self._closure(header, options)]
        call = [*self._call(option for option in options if option != _COMPILE_ONLY), *_PRECOMPILED_OPTIONS]
        key = digest_of("header", self.version, call, content)
        with self._lock:
            alone = self._making.setdefault(key, threading.Lock())
        made = self.folder / f"{key}{PRECOMPILED_SUFFIX}"
        with alone:
            if not self._is_whole(made.name):
                self._make(made.name, [*call, str(header)], f"{header.name}{PRECOMPILED_SUFFIX}")
        return made

    def _key(self, part: Part) -> str:
        """Return the digest of everything that goes into a part, wherever that is installed."""
        options = [*part.options, *part.code_options]
        files = self._closure(part.source, part.options)
        if part.prefix is not None:
            options += ["-include", str(part.prefix)]
            files += self._closure(part.prefix, part.options)
        content = [(_portable(str(file)), self._texts[file]) for file in files]
        call = [_portable(option) for option in self._call(options)]
        return digest_of("object", self.version, call, content)

    def _call(self, options: Iterable[str]) -> list[str]:
        return [*(self.compiler or clang()), *options]

    def _make(self, key: str, command: Sequence[str], name: str) -> None:
        """Make the file of the store that is named by ``key``, unless another process was first.

        A whole file that is there is not replaced: whoever links to it gets equal bytes.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="compiling-") as scratch:
            output = Path(scratch) / name
            call_tool([*command, "-o", str(output)])
            if self._is_whole(key):
                return
            told = Path(scratch) / f"{name}{DIGEST_SUFFIX}"
            told.write_text(file_digest(output), encoding="ascii")
            output.replace(self.folder / key)
            told.replace(self.folder / f"{key}{DIGEST_SUFFIX}")

    def _is_whole(self, key: str) -> bool:
        """Whether a file of the store is there with the bytes that it was made with."""
        with contextlib.suppress(OSError):
            told = (self.folder / f"{key}{DIGEST_SUFFIX}").read_text("ascii", "replace")
            return told == file_digest(self.folder / key)
        return False

    def _closure(self, source: Path, options: Sequence[str]) -> list[Path]:
        """Return ``source`` and every header that it includes, directly or not, in the order of first use."""
        folders = [Path(option.removeprefix("-I")) for option in options if option.startswith("-I")]
        found = [source]
        for file in found:
            if file not in self._texts:
                self._texts[file] = file.read_bytes()
            for name in _INCLUDE.findall(self._texts[file]):
                places = (folder / name.decode() for folder in (file.parent, *folders))
                header = next((place for place in places if place.is_file()), None)
                if header is not None and header not in found:
                    found.append(header)
        return found


def _portable(text: str) -> str:
    """Return an option or a path without the places where compiler and simulator are installed."""
    return text.replace(str(compiler_folder()), "<compiler>").replace(str(_SIMULATOR), "<simulator>")
