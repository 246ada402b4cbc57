"""Program texts of OpenEvolve: every candidate there and back, and nothing else gets through."""

import pytest
from conftest import make_candidate
from hypothesis import given
from hypothesis import strategies as st

from ascend_gym.core.errors import MisuseError
from ascend_gym.rewrites.fenced import sections
from ascend_gym.suite.loader import list_operators
from baselines.openevolve_program import BLOCK_END, BLOCK_START, ProgramText

OPERATOR_DEFINITION = """\
class Toy : public OpDef {
public:
    explicit Toy(const char* name) : OpDef(name) {}
};
OP_ADD(Toy);
"""
ENTRY = 'extern "C" __global__ __aicore__ void toy(GM_ADDR x,\n    GM_ADDR y)\n{\n'
LINE = st.sampled_from(
    [
        "int a;",
        "",
        "    b();",
        "// 块 \u2028",
        "```",
        "### FILE: op_host/toy.cpp",
        "#if 1",
        "~~~",
        "\t\f",
        "}",
    ]
)
TEXT = st.lists(LINE, max_size=6).map("\n".join)
HOST = st.tuples(TEXT, st.sampled_from(["", f"\n{OPERATOR_DEFINITION}"]), TEXT).map("".join)
KERNEL = st.tuples(TEXT, st.sampled_from(["", f"\n{ENTRY}", f"\n{ENTRY}}}\n{ENTRY}"]), TEXT).map("".join)


def _blocks(program):
    """Return the texts between markers."""
    return [part.split(BLOCK_END)[0] for part in program.split(BLOCK_START)[1:]]


@given(HOST, KERNEL, st.sampled_from(["\n", "\r\n", "\r"]))
def test_the_initial_program_is_the_baseline_to_the_byte(host, kernel, line_end):
    base = make_candidate(host.replace("\n", line_end), kernel.replace("\n", line_end))
    assert ProgramText(base).candidate(ProgramText(base).initial) == base


@given(HOST, KERNEL, st.data())
def test_what_changes_in_a_block_changes_in_its_file_alone(host, kernel, data):
    base = make_candidate(host, kernel)
    program = ProgramText(base)
    blocks = _blocks(program.initial)
    if not blocks:
        return
    number = data.draw(st.integers(0, len(blocks) - 1))
    text = data.draw(TEXT) + "\nint unheard_of;\n"
    pieces = program.initial.split(BLOCK_START)
    pieces[number + 1] = text + BLOCK_END + pieces[number + 1].partition(BLOCK_END)[2]
    candidate = program.candidate(BLOCK_START.join(pieces))
    changed = [path for path, after in candidate.texts.items() if after != base.texts[path]]
    assert len(changed) == 1
    assert text in candidate.texts[changed[0]]
    assert BLOCK_START not in candidate.texts[changed[0]]


@given(HOST, KERNEL, st.data())
def test_a_change_outside_of_the_blocks_is_refused(host, kernel, data):
    program = ProgramText(make_candidate(host, kernel))
    lines = program.initial.split("\n")
    inside = False
    outside = []
    for number, line in enumerate(lines):
        inside = inside and f"{line}\n" != BLOCK_END
        outside += [] if inside else [number]
        inside = inside or f"{line}\n" == BLOCK_START
    number = data.draw(st.sampled_from(outside))
    lines[number : number + 1] = data.draw(
        st.sampled_from([[lines[number] + "x"], [lines[number] + " "], [*lines[number : number + 1]] * 2, []])
    )
    assert "EVOLVE-BLOCK" in program.candidate("\n".join(lines))


@pytest.mark.parametrize("marker", [BLOCK_START, BLOCK_END])
def test_markers_that_are_gone_or_doubled_are_refused(marker):
    program = ProgramText(make_candidate("int tiling;\n", "int kernel;\n"))
    assert "4 EVOLVE-BLOCK marker lines" in program.candidate(program.initial.replace(marker, "", 1))
    assert "5 are left" in program.candidate(program.initial.replace(marker, marker * 2, 1))


def test_a_refusal_names_the_line():
    program = ProgramText(make_candidate(kernel=f"// kernel\n{ENTRY}}}\n"))
    problem = program.candidate(program.initial.replace("void toy(", "void joy("))
    assert "only text between EVOLVE-BLOCK markers may change" in problem
    assert "void joy(GM_ADDR x,' " not in problem
    assert "void toy(GM_ADDR x,' became" in problem


def test_interfaces_are_fixed_and_the_rest_is_not():
    base = make_candidate(f"int tile;\n{OPERATOR_DEFINITION}int end;\n", f"int k;\n{ENTRY}    run();\n}}\n")
    assert _blocks(ProgramText(base).initial) == ["int tile;\n", "int end;\n", "int k;\n", "    run();\n}\n"]


def test_operators_of_the_suite_keep_their_definition_and_entry_and_read_as_files():
    for spec in list_operators():
        program = ProgramText(spec.baseline)
        assert program.candidate(program.initial) == spec.baseline
        assert {section.path for section in sections(program.initial)} == set(spec.baseline.texts)
        evolving = "".join(_blocks(program.initial))
        assert "TilingFunc" in evolving
        assert "OP_ADD" not in evolving
        assert 'extern "C"' not in evolving


def test_sources_with_markers_of_their_own_are_refused():
    with pytest.raises(MisuseError, match=r"op_kernel/toy\.cpp holds EVOLVE-BLOCK markers"):
        ProgramText(make_candidate(kernel=f"{BLOCK_START}int a;\n{BLOCK_END}"))
