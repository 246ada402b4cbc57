"""Rewriting of launches: what is one, what is none, and that lines stay where they are."""

from __future__ import annotations

import pytest

from ascend_gym.core.errors import MisuseError
from npu_daemon.profiling.asc_source import code_of_files, has_launches, kernel_types, with_launch_calls
from npu_daemon.simulator.task_type import TaskType


def _call(name: str, block_dim: str, callee: str, arguments: str, task_type: str = "MAX") -> str:
    return (
        f'asim::launch_kernel<0>("{name}", KERNEL_TYPE_{task_type}, ({block_dim}), '
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
    assert with_launch_calls(launch, {}) == expected


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
    assert with_launch_calls(text, {}) == text


def test_lines_keep_their_numbers() -> None:
    text = "a();\nk<1,\n  2>\n    <<<1,\n 0,\n s>>>(\n  x, // the first >>>\n  y);\nb();\n"
    rewritten = with_launch_calls(text, {})
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
        with_launch_calls(text, {})


def test_kernels_name_their_cores_by_qualifier_or_in_their_body() -> None:
    text = """
    extern "C" __global__ __vector__ void a(GM_ADDR x) {}
    template <int n> __global__ __cube__ void b(GM_ADDR x) {}
    __mix__(1, 2) __global__ void c(GM_ADDR x) {}
    __global__ __aicore__ void d(GM_ADDR x) { KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1); }
    __global__ __aicore__ void e(GM_ADDR x) { /* KERNEL_TYPE_AIC_ONLY */ }
    // __global__ __cube__ void f() {}
    """
    assert kernel_types(["int no_kernel;", text]) == {
        "a": TaskType.AIV_ONLY,
        "b": TaskType.AIC_ONLY,
        "c": TaskType.MIX_1_2,
        "d": TaskType.MIX_1_1,
    }


def test_a_launch_says_which_cores_its_kernel_names() -> None:
    called = with_launch_calls("ns::k<1><<<2, 0, s>>>(x);", {"k": TaskType.MIX_1_2})
    assert called == _call("ns::k", "2", "ns::k<1>", ", x", "MIX_AIC_1_2") + ";"


def test_only_lines_of_the_programs_own_files_are_its_code() -> None:
    files = {"/p/a.asc": "int a;", "/usr/x.h": "int x;", "/p/sub/b.h": "int b;", "/pq/c.h": "int c;"}
    text = "".join(f'# 7 "{path}" 1 3\n{line}\n' for path, line in files.items())
    assert code_of_files(text, ["/p"]) == "int a;\nint b;\n"


def test_a_kernel_without_a_declaration_has_the_cores_that_its_code_needs() -> None:
    """Its neighbours' cores are not its own, be they declared or not."""
    text = """
    class Product { void Run() { AscendC::Mmad(c, a, b, params); } };
    struct Rows { TQue<TPosition::VECIN, 1> queue; void Run() {} };
    template <typename T> void work() { T object; object.Run(); }
    extern "C" __global__ __aicore__ void cube(GM_ADDR x) { Product product; product.Run(); }
    extern "C" __global__ __aicore__ void rows(GM_ADDR x) { work<Rows>(); }
    extern "C" __global__ __aicore__ void both(GM_ADDR x) { work<Rows>(); work<Product>(); }
    extern "C" __global__ __aicore__ void empty(GM_ADDR x) { nothing(); }
    """
    assert kernel_types([text]) == {
        "cube": TaskType.AIC_ONLY,
        "rows": TaskType.AIV_ONLY,
        "both": TaskType.MIX_1_2,
    }
