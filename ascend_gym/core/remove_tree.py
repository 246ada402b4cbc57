"""Removes a folder whatever a candidate has put into it: any depth, any number of files, any permissions.

Links are removed and never followed. Neither recursion nor long paths occur, because a non-empty subfolder is
first moved up to the top of the tree, and every folder is emptied there.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME_ONLY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWNER_MAY_ALL = 0o700


def remove_tree(path: Path) -> None:
    """Remove a folder and its contents; a folder that does not exist, or vanishes meanwhile, is no error.

    No process may still be writing into it.

    Args:
        path: folder. A link to a folder is refused.

    Raises:
        OSError: an entry cannot be removed; all others are.
    """
    try:
        with _opened(str(path), None) as top:
            _Removal(top).empty()
        os.rmdir(path)
    except FileNotFoundError:
        return


@contextlib.contextmanager
def scratch_folder(*, prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Create a folder for temporary files that candidates may write to; it is removed after the block.

    Args:
        prefix: prefix of its name.
        parent: parent folder; by default the system's folder for temporary files.
    """
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield path
    finally:
        remove_tree(path)


class _Removal:
    """Empties one folder.

    Args:
        top: descriptor of the folder.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        self._token = secrets.token_hex(8)  # so that no name in the tree is one of ours
        self._moved = 0
        self._problem: OSError | None = None

    def empty(self) -> None:
        """Remove everything in the folder.

        Raises:
            OSError: the first error.
        """
        self._empty(self._top)
        emptied = 0
        while emptied < self._moved:
            name = self._name(emptied)
            with self._noted(), _opened(name, self._top) as folder:
                self._empty(folder)
            with self._noted():
                os.rmdir(name, dir_fd=self._top)
            emptied += 1
        if self._problem is not None:
            raise self._problem

    def _name(self, number: int) -> str:
        return f"removed-{self._token}-{number}"

    def _empty(self, folder: int) -> None:
        """Remove the files of a folder and move its subfolders to the top."""
        removed = True
        while removed:  # a file system may leave names out while others are removed: look again
            removed = False
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.startswith(f"removed-{self._token}-"):
                        continue
                    removed = self._remove(entry, folder) or removed

    def _remove(self, entry: os.DirEntry[str], folder: int) -> bool:
        """Remove one entry, or move it to the top; return whether it is gone from this folder."""
        with self._noted():
            if entry.is_dir(follow_symlinks=False):
                self._move_up(entry.name, folder)
            else:
                os.unlink(entry.name, dir_fd=folder)
            return True
        return False

    def _move_up(self, name: str, folder: int) -> None:
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=folder)
            return
        with _opened(name, folder):  # moving changes what it holds for its parent: it must be writable
            os.rename(name, self._name(self._moved), src_dir_fd=folder, dst_dir_fd=self._top)
        self._moved += 1

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        """Continue after an error but keep the first one; a missing entry is no error."""
        try:
            yield
        except FileNotFoundError:
            return
        except OSError as error:
            self._problem = self._problem or error


@contextlib.contextmanager
def _opened(name: str, parent: int | None) -> Iterator[int]:
    """Open a folder with read, write and search permission, granting them first if necessary."""
    try:
        folder = os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        _give_rights(name, parent)
        folder = os.open(name, _FOLDER, dir_fd=parent)
    try:
        if os.fstat(folder).st_mode & _OWNER_MAY_ALL != _OWNER_MAY_ALL:
            os.fchmod(folder, _OWNER_MAY_ALL)
        yield folder
    finally:
        os.close(folder)


def _give_rights(name: str, parent: int | None) -> None:
    folder = os.open(name, _NAME_ONLY, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{folder}", _OWNER_MAY_ALL)
    finally:
        os.close(folder)
