"""What compiler output becomes for the author of an operator."""

from __future__ import annotations

from pathlib import Path

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase, SourceFile, Sources
from ascend_gym.core.status import Status
from npu_daemon.simulator.compiler_errors import MAX_ERRORS, parse_compiler_errors
from npu_daemon.simulator.host_build import build_host

SOURCES = Sources(
    files=(
        SourceFile(path="op_host/toy.cpp", text="one\n  two;\nthree\n"),
        SourceFile(path="op_host/toy_tiling.h", text="head\n"),
    ),
    main="op_host/toy.cpp",
)


def diagnose(text: str) -> list[Diagnostic]:
    return parse_compiler_errors(text, SOURCES, Phase.BUILD_TILING)


def test_an_error_has_file_line_message_and_the_source_line() -> None:
    (found,) = diagnose("op_host/toy.cpp:2:7: error: expected ‘;’ before ‘}’ token")
    assert (found.file, found.line) == ("op_host/toy.cpp", 2)
    assert found.message == "expected ‘;’ before ‘}’ token\n    two;"
    assert found.phase is Phase.BUILD_TILING


def test_notes_and_warnings_are_not_errors() -> None:
    text = "op_host/toy.cpp:1:1: warning: unused\nop_host/toy.cpp:1:1: note: declared here\n"
    assert diagnose(text) == []


def test_an_error_inside_a_library_header_is_shown_where_the_operator_led_to_it() -> None:
    text = (
        "/opt/include/x.h: In instantiation of ‘f<T>’:\n"
        "op_host/toy_tiling.h:1:3:   required from here\n"
        "/opt/include/x.h:90:5: error: static assertion failed: a tiling field must be a number\n"
        "/opt/include/y.h:3:5: error: another one\n"
    )
    first, second = diagnose(text)
    assert (first.file, first.line) == ("op_host/toy_tiling.h", 1)
    assert first.message == "static assertion failed: a tiling field must be a number\n    head"
    assert (second.file, second.line, second.message) == (None, None, "another one")


def test_the_innermost_line_of_the_operator_comes_before_where_it_includes_the_header() -> None:
    """As clang says it: the includes, the error, and what instantiated it from the inside out."""
    text = (
        "In file included from op_host/toy.cpp:1:\n"
        "/asim/library.h:49:19: error: not for this type\n"
        "/asim/library.h:54:5: note: in instantiation of function template 'g<long>' requested here\n"
        "op_host/toy.cpp:3:14: note: in instantiation of function template 'f<long>' requested here\n"
        "op_host/toy.cpp:2:5: note: in instantiation of member function 'Outer<long>::f' requested here\n"
        "In file included from op_host/toy.cpp:1:\n"
        "/asim/library.h:90:1: error: a header that does not compile\n"
        "op_host/toy.cpp:2:5: note: declared here\n"
    )
    assert [(found.file, found.line) for found in diagnose(text)] == [
        ("op_host/toy.cpp", 3),
        ("op_host/toy.cpp", 1),
    ]


def _misfit(call: str, *notes: str) -> str:
    """Return what is said of a call on line 2, without the line, when clang says this of the candidates."""
    rows = "".join(f"/asim/x.h:9:4: note: candidate {note}\n" for note in notes)
    (found,) = diagnose(f"op_host/toy.cpp:2:5: error: no matching function for call to '{call}'\n{rows}")
    assert found.line == 2
    message, _ = found.message.rsplit("\n", 1)
    return message


def test_a_call_that_fits_no_function_is_told_with_what_is_wrong_in_it() -> None:
    fewer = "function template not viable: requires 6 arguments, but 4 were provided"
    conflict = "template ignored: deduced conflicting types for parameter 'T' ('_Float16' vs. 'float')"
    assert _misfit("Add", fewer, conflict) == (
        "no matching function for call to 'Add': "
        "deduced conflicting types for parameter 'T' ('half' vs. 'float')"
    )
    integer = (
        "no known conversion from 'float' to 'const uint32_t' (aka 'const unsigned int') for 3rd argument"
    )
    assert _misfit("Add", f"function not viable: {integer}", conflict).endswith(
        ": no known conversion from 'float' to 'const uint32_t' for 3rd argument"
    )


def test_a_call_with_another_number_of_arguments_is_told_with_how_many_there_should_be() -> None:
    three = "function template not viable: requires 3 arguments, but 2 were provided"
    other = "template ignored: could not match 'TBuf' against 'TQue'"
    assert _misfit("DataCopyPad", three, three).endswith(": requires 3 arguments, but 2 were provided")
    assert _misfit("InitBuffer", other, three).endswith(
        ": could not match 'TBuf' against 'TQue'; another one requires 3 arguments, but 2 were provided"
    )


def test_what_is_said_of_a_candidate_is_bounded() -> None:
    assert len(_misfit("Add", f"template ignored: {'T' * 100_000}")) < 400


def test_a_fatal_error_and_a_line_beyond_the_file_are_understood() -> None:
    (found,) = diagnose("op_host/toy.cpp:99:10: fatal error: none.h: No such file or directory")
    assert (found.line, found.message) == (99, "none.h: No such file or directory")


def test_missing_definitions_are_link_errors() -> None:
    text = (
        "/usr/bin/ld: /tmp/cc.o: in function `f()':\ntoy.cpp:(.text+0x5): undefined reference to `plan()'\n"
    )
    assert [found.message for found in diagnose(text)] == ["undefined reference to `plan()'"]


def test_only_the_first_errors_are_kept() -> None:
    text = "\n".join(f"op_host/toy.cpp:1:1: error: number {i}" for i in range(MAX_ERRORS + 3))
    assert len(diagnose(text)) == MAX_ERRORS


def test_sources_without_a_cpp_file_are_a_build_error(tmp_path: Path) -> None:
    header_only = Sources(files=SOURCES.files[1:], main="op_host/toy_tiling.h")
    failure = build_host(header_only, tmp_path, tmp_path)
    assert isinstance(failure, Failure)
    assert failure.status is Status.BUILD_ERROR
    assert "expected a .cpp file" in failure.diagnostics[0].message
