"""Folders that candidates have written to are removed, whatever they hold."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ascend_gym.core.private_folder import PrivateFolder, remove_abandoned_folders
from ascend_gym.core.remove_tree import remove_tree, scratch_folder

DEEPER_THAN_RECURSION = 5_000  # and than descriptors, and than the longest path
NOBODY = 65534


def nest(folder: Path, depth: int) -> None:
    """Make a chain of folders in ``folder``, a file in each."""
    parent = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=parent)
        child = os.open("d", os.O_RDONLY, dir_fd=parent)
        os.close(parent)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=child))
        parent = child
    os.close(parent)


@pytest.mark.slow
def test_any_depth(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    nest(tmp_path / "tree", DEEPER_THAN_RECURSION)
    remove_tree(tmp_path / "tree")
    assert os.listdir(tmp_path) == []


def test_many_files_and_folders(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in range(200):
        (tree / f"{name}" / "empty").mkdir(parents=True)
        (tree / f"{name}" / "full").mkdir()
        (tree / f"{name}" / "full" / "file").touch()
    parent = os.open(tree / "7" / "full", os.O_RDONLY)
    for name in range(5_000):
        os.close(os.open(f"{name}", os.O_CREAT | os.O_WRONLY, dir_fd=parent))
    os.close(parent)
    remove_tree(tree)
    assert os.listdir(tmp_path) == []


def test_links_are_not_followed_and_any_kind_of_file_goes(tmp_path: Path) -> None:
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    outside.mkdir()
    (outside / "kept").touch()
    (tree / "deep").mkdir(parents=True)
    (tree / "to a folder").symlink_to(outside)
    (tree / "deep" / "to a folder").symlink_to(outside)
    (tree / "deep" / "to itself").symlink_to("to itself")
    (tree / "deep" / os.fsdecode(b"\xff\n" * 100)).touch()
    os.link(outside / "kept", tree / "hard link")
    os.mkfifo(tree / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tree / "socket"))
    remove_tree(tree)
    assert [path.name for path in tmp_path.rglob("*")] == ["outside", "kept"]


def test_a_link_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "kept").touch()
    (tmp_path / "link").symlink_to("folder")
    with pytest.raises(OSError, match="link"):
        remove_tree(tmp_path / "link")
    assert (tmp_path / "folder" / "kept").exists()


@contextmanager
def without_the_rights_of_root(folder: Path) -> Iterator[None]:
    """Act as somebody who may not write everywhere, and owns the folder."""
    if os.geteuid() != 0:
        yield
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_folders_that_nobody_may_enter_or_write() -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        tree = Path(name) / "tree"
        for part in ("a", "b"):
            (tree / part / "deep" / "deeper").mkdir(parents=True)
            (tree / part / "deep" / "deeper" / "file").touch()
        for part, mode in (
            ("a/deep/deeper", 0o000),
            ("a/deep", 0o000),
            ("b/deep/deeper", 0o500),
            ("b", 0o400),
        ):
            (tree / part).chmod(mode)
        with without_the_rights_of_root(Path(name)):
            remove_tree(tree)
        assert os.listdir(name) == []


def test_what_cannot_be_removed_is_told_and_the_rest_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    for name in ("stays", "deep/stays", "goes", "deep/goes"):
        (tree / name).touch()
    unlink = os.unlink

    def stubborn(name: str, *, dir_fd: int) -> None:
        if name == "stays":
            raise PermissionError(1, "Operation not permitted", name)
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", stubborn)
    with pytest.raises(PermissionError, match="stays"):
        remove_tree(tree)
    assert {path.name for path in tree.rglob("*") if path.is_file()} == {"stays"}


def test_a_folder_that_is_not_there_is_removed_already(tmp_path: Path) -> None:
    remove_tree(tmp_path / "nothing")


def test_a_scratch_folder_lasts_as_long_as_its_block(tmp_path: Path) -> None:
    with scratch_folder(prefix="run-", parent=tmp_path) as folder:
        nest(folder, 10)
        assert folder.parent == tmp_path
    assert not folder.exists()


@pytest.mark.slow
def test_an_abandoned_folder_does_not_keep_the_next_daemon_from_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parent = tempfile.mkdtemp(dir="/tmp")  # sockets in private folders need short paths
    monkeypatch.setattr(tempfile, "tempdir", parent)
    abandoned = PrivateFolder()
    nest(abandoned.path, DEEPER_THAN_RECURSION)
    abandoned.leave()
    in_use = PrivateFolder()
    remove_abandoned_folders()
    assert os.listdir(parent) == [in_use.path.name]
    in_use.remove()
    os.rmdir(parent)
