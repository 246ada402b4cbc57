"""Rewriting of launches: what is one, what is none, and that lines stay where they are."""

from __future__ import annotations

import pytest

from ascend_gym.core.errors import MisuseError
from npu_daemon.profiling.asc_source import has_launches, with_launch_calls


def _call(name: str, block_dim: str, callee: str, arguments: str) -> str:
    return (
        f'asim::launch_kernel("{name}", ({block_dim}), '
        f"[=](auto... asim_arguments) {{ {callee}(asim_arguments...); }}{arguments})"
    )


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("k<<<1, 0, s>>>();", _call("k", "1", "k", "") + ";"),
        ("k<<<n, nullptr, s>>>(a, b[1]);", _call("k", "n", "k", ", a, b[1]") + ";"),
        (
            "k<A, (1 > 0), B<C>><<<f(1, 2), 0, s>>>(a);",
            _call("k", "f(1, 2)", "k<A, (1 > 0), B<C>>", ", a") + ";",
        ),
        ("ns::k<2><<<d>>>(g(a, b), *p);", _call("ns::k", "d", "ns::k<2>", ", g(a, b), *p") + ";"),
        ("if (x) k <<<1, 0, s>>> (Tiling{1, 2});", "if (x) " + _call("k", "1", "k", ", Tiling{1, 2}") + ";"),
    ],
)
def test_a_launch_becomes_a_call(launch: str, expected: str) -> None:
    assert with_launch_calls(launch) == expected


@pytest.mark.parametrize(
    "text",
    [
        "// k<<<1, 0, s>>>();\n",
        "/* k<<<1, 0, s>>>(); */",
        'puts("k<<<1, 0, s>>>()");',
        'puts(R"x(k<<<1, 0, s>>>())x");',
        "int big = 1'000'000; a << b; c >> d;",
        "template <class T, class = X<Y<Z<T>>>> struct S {};",
    ],
)
def test_what_is_no_launch_stays(text: str) -> None:
    assert not has_launches(text)
    assert with_launch_calls(text) == text


def test_lines_keep_their_numbers() -> None:
    text = "a();\nk<1,\n  2>\n    <<<1,\n 0,\n s>>>(\n  x, // the first >>>\n  y);\nb();\n"
    rewritten = with_launch_calls(text)
    assert rewritten.splitlines()[8] == "b();"
    assert rewritten.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("\nk<<<1, 0, s>>>;", "line 2: expected \\(arguments\\)"),
        ("k<<<1, (0, s>>>();", "expected >>>"),
        ("k<<<>>>();", "expected <<<block_dim"),
        ("<<<1, 0, s>>>();", "name of a kernel"),
        ("k<<<1, 0, s>>>(a;", "expected \\)"),
        ("x> <<<1, 0, s>>>(a);", "without its <"),
    ],
)
def test_a_launch_that_cannot_be_read_is_refused_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(MisuseError, match=complaint):
        with_launch_calls(text)
