"""The process that runs OpenEvolve: what it says when it breaks, and that nothing of it is left."""

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_gym.core.errors import InfrastructureError, MisuseError
from baselines import package_link
from baselines.package_link import Child, require_package

CONNECT = """
import json, os, signal, socket, subprocess, sys, time
line = socket.socket(fileno=int(sys.argv[1]))
stream = line.makefile("rw", newline="\\n")
def ask(**message):
    stream.write(json.dumps(message) + "\\n")
    stream.flush()
    return json.loads(stream.readline() or "null")
first = json.loads(stream.readline())
"""
GRANDCHILD = """
grandchild = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
ask(ask="next", problem=str(grandchild.pid))
"""


@pytest.fixture
def start():
    children = []

    def started(script):
        child = Child([sys.executable, "-c", CONNECT + script], "OpenEvolve")
        children.append(child)
        child.answer({"greeting": "块\n\ud800"})
        return child

    yield started
    for child in children:
        child.close()


def _ended(pid):
    """Wait until a process has ended; a zombie has."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 20)[0])
    finally:
        os.close(descriptor)


def test_questions_and_answers_hold_any_text(start):
    child = start("while True: first = ask(ask='next', problem=first)")
    assert child.question() == {"ask": "next", "problem": {"greeting": "块\n\ud800"}}
    child.answer({"text": "a" * 10**6})
    assert child.question()["problem"] == {"text": "a" * 10**6}


def test_a_child_that_ends_well_asks_nothing_more(start):
    assert start("sys.exit(0)").question() is None


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        (
            "print('lost', file=sys.stderr); raise RuntimeError('no such thing')",
            "exit status 1.*no such thing",
        ),
        ("os.kill(os.getpid(), signal.SIGKILL)", r"exit status -9.*\(nothing\)"),
        ('stream.write(\'{"ask": "eval\'); stream.flush(); os._exit(7)', "exit status 7"),
        ("stream.write('hello\\n'); stream.flush(); signal.pause()", "something else than a message"),
        ("stream.write('[1]\\n'); stream.flush(); signal.pause()", "something else than a message"),
    ],
)
def test_a_child_that_breaks_is_quoted(start, script, complaint):
    child = start(script)
    with pytest.raises(InfrastructureError, match=f"(?s){complaint}"):
        child.question()


def test_only_the_last_lines_are_quoted(start):
    child = start("[print('line', n) for n in range(100)]; sys.stdout.flush(); os._exit(1)")
    with pytest.raises(InfrastructureError) as caught:
        child.question()
    assert "line 99" in str(caught.value)
    assert "line 84\n" not in str(caught.value)


def test_a_silent_child_is_not_waited_for_forever(start, monkeypatch):
    monkeypatch.setattr(package_link, "_SILENCE_LIMIT_S", 0.1)
    with pytest.raises(InfrastructureError, match=r"was silent for 0\.1 s"):
        start("signal.pause()").question()


def test_an_answer_to_nobody_is_an_infrastructure_error(start):
    child = start("os._exit(5)")
    assert _ended(child.pid)
    with pytest.raises(InfrastructureError, match="exit status 5"):
        child.answer({"text": "x" * 10**7})


def test_closing_ends_the_whole_tree_and_removes_the_folder(start):
    child = start(f"print(os.getcwd()); sys.stdout.flush(){GRANDCHILD}")
    grandchild = int(child.question()["problem"])
    folder = Path(f"/proc/{child.pid}/cwd").resolve()
    assert Path(f"/proc/{grandchild}").exists()
    child.close()
    assert _ended(child.pid)
    assert _ended(grandchild)
    assert not folder.exists()
    child.close()


def test_closing_does_not_depend_on_the_childs_good_will(start):
    child = start("signal.signal(signal.SIGTERM, signal.SIG_IGN); ask(ask='next', problem='')")
    child.question()
    child.close()
    assert _ended(child.pid)


def test_a_group_that_cannot_be_ended_is_told(start, monkeypatch):
    child = start("signal.pause()")
    with monkeypatch.context() as patch:
        patch.setattr(package_link, "_running", lambda group: [group])
        patch.setattr(package_link, "_END_TIMEOUT_S", 0.05)
        with pytest.raises(InfrastructureError, match=f"{child.pid}.*could not be ended"):
            child.close()
    assert _ended(child.pid)


def test_a_command_that_does_not_exist_is_an_infrastructure_error():
    with pytest.raises(InfrastructureError, match="could not be started"):
        Child(["/nowhere/python"], "OpenEvolve")


def test_the_key_of_the_endpoint_is_not_handed_on(start, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("SOME_SETTING", "kept")
    child = start("ask(ask='next', problem=dict(os.environ))")
    environment = child.question()["problem"]
    assert environment["SOME_SETTING"] == "kept"
    assert "sk-secret" not in environment.values()


def test_a_package_gets_the_variables_that_are_its_own():
    child = Child([sys.executable, "-c", f"{CONNECT}ask(ask=os.environ.get('OWN'))"], "GEPA", OWN="1")
    try:
        child.answer({})
        assert child.question() == {"ask": "1"}
    finally:
        child.close()


@pytest.mark.parametrize("found", ["0.9.1", "none"])
def test_a_package_of_another_version_is_refused_with_what_to_install(found, monkeypatch):
    monkeypatch.setattr(package_link, "version", lambda name: found)
    with pytest.raises(MisuseError, match=rf"needs GEPA 0.1.x, and {found} is.*'ascend-gym\[gepa\]'"):
        require_package("gepa", "GEPA", "0.1.")
    require_package("gepa", "GEPA", found)


def test_a_killed_parent_leaves_no_openevolve_behind(tmp_path):
    pytest.importorskip(
        "openevolve", reason="openevolve is not installed: pip install 'ascend-gym[openevolve]'"
    )
    script = (
        "import sys, time\n"
        "from ascend_gym.core.own_python import own_python_command\n"
        "from baselines.package_link import Child\n"
        "child = Child(own_python_command('baselines.openevolve_start'), 'OpenEvolve')\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    child = int(parent.stdout.readline())
    folder = Path(f"/proc/{child}/cwd").resolve()
    parent.kill()
    parent.communicate()
    assert _ended(child)
    assert not folder.exists()
