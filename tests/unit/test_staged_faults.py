"""Wrong programs of the staged language: each is refused before anything is built, with the reason."""

from __future__ import annotations

import pytest
from staged_programs import toy_inputs, toy_spec, verified

from ascend_gym.staged.interpret import interpret
from ascend_gym.staged.syntax import StagedError

SPEC = toy_spec(7, 100)

RIGHT = """def host():
    columns = dim(a, -1)
    rows = size(a) // columns
    tile = min(align(columns, 64), knob("tile", 64, [128]))
    launch(cores=min(vec_cores(), 3), workspace=8 * vec_cores())


def kernel(a: gm[f32], b: gm[f32], y: out[f32], w: work[f32], rows: i32, columns: i32, tile: i32):
    p = alloc_ub(tile, f32)
    q = alloc_ub(tile, f32)
    r = alloc_ub(tile, f32)
    t = alloc_ub(tile, f32)
    s = alloc_ub(8, f32)
    v = alloc_ub(tile + 512, f32)
    g = alloc_ub(8, f32)
    h = alloc_ub(384, f32)
    index = alloc_ub(tile, i32)
    bits = alloc_ub(tile // 8, u8)
    first, count = share(rows)
    mine = 0.0
    for row in range(first, first + count):
        for off, m in tiles(columns, tile):
            with copyin():
                load(p, a[row * columns + off], m)
            with compute():
                reduce_sum(s, p, v, m)
                mine = mine + read(s, 0)
    with compute():
        fill(g, 0.0, 8)
        write(g, 0, mine)
    with copyout():
        store(w[core() * 8], g, 8)
    sync_all()
    with copyin():
        load(h, w[0], cores() * 8)
    with compute():
        reduce_sum(s, h, v, cores() * 8)
        total = read(s, 0)
        arange(index, 0, tile)
        muls(index, index, 4, tile)
    for row in range(first, first + count):
        for at, n in tiles(columns, tile):
            with copyin():
                load(p, a[row * columns + at], n)
                load(q, b[at], n)
            with compute():
                mul(t, p, q, n)
                compares_gt(bits, t, 0.0, n)
                selects(t, bits, t, 0.5, n)
                gather(r, t, index, 0, n)
                adds(r, r, total, n)
            with copyout():
                store(y[row * columns + at], r, n)
"""

STORE = "                store(y[row * columns + at], r, n)"
LOAD = "                load(q, b[at], n)"
COPY_IN = "            with copyin():\n                load(p, a[row * columns + at], n)\n"
LAST = "                adds(r, r, total, n)\n"

# name: (what is replaced, by what, a part of the refusal)
FAULTS = {
    # grammar
    "python syntax": ("    mine = 0.0", "    mine = = 0.0", "not Python syntax"),
    "import": ("def host():", "import os\n\n\ndef host():", "two functions host and kernel"),
    "decorator": ("def kernel(", "@jit\ndef kernel(", "plain parameters"),
    "while": ("    mine = 0.0", "    while mine:\n        mine = 0.0", "not part of the language"),
    "lambda": ("    mine = 0.0", "    mine = lambda: 0", "not part of scalar expressions"),
    "attribute": ("    mine = 0.0", "    mine = rows.real", "not part of scalar expressions"),
    "string": ("    mine = 0.0", "    mine = 'x'", "not a number"),
    "host without launch": ("    launch(", "    launched = size(a)\n    lunch(", "host holds assignments"),
    "launch in the middle": ("    tile = min", "    launch(cores=1)\n    tile = min", "last statement"),
    "knob of text": ('knob("tile", 64, [128])', 'knob("tile", "64")', "positive whole numbers"),
    "vconst, which does not exist": ("fill(g, 0.0, 8)", "vconst(g, 0.0, 8)", "no instruction"),
    "instruction without count": ("mul(t, p, q, n)", "mul(t, p, q)", "got 3 arguments"),
    "alloc after a statement": ("    mine = 0.0", "    mine = alloc_ub(8, f32)", "at the top"),
    "alloc of an unknown type": ("g = alloc_ub(8, f32)", "g = alloc_ub(8, f64)", "alloc_ub takes"),
    "buffer as a number": ("mine = mine + read(s, 0)", "mine = mine + s", "is no number"),
    "assignment to a buffer": ("    mine = 0.0", "    p = 0.0", "cannot be assigned"),
    # stages
    "load in compute": (LOAD, f"{LOAD}\n            with compute():\n    {LOAD}", "not in compute"),
    "arithmetic in copy-in": (
        LOAD,
        f"{LOAD}\n                adds(t, q, 1.0, n)",
        "stands inside with compute()",
    ),
    "store in compute": (LAST, f"{LAST}{STORE}\n", "with copyout()"),
    "read outside of compute": ("    mine = 0.0", "    mine = read(s, 0)", "no function read here"),
    "nested stages": (
        "        fill(g, 0.0, 8)",
        "        with compute():\n            fill(g, 0.0, 8)",
        "do not nest",
    ),
    "share in a stage": ("        fill(g, 0.0, 8)", "        one, other = share(rows)", "outside of stages"),
    "sync_all in a loop": (
        "    mine = 0.0",
        "    for k in range(0, 2):\n        sync_all()\n    mine = 0.0",
        "at the top",
    ),
    # buffers
    "loaded and stored": (
        "store(y[row * columns + at], r, n)",
        "store(y[row * columns + at], p, n)",
        "both loaded and stored",
    ),
    "loaded, never used": ("mul(t, p, q, n)", "mul(t, p, p, n)", "loaded and never used"),
    "stored before it is computed": (
        "            with copyout():\n" + STORE,
        "            with copyout():\n" + STORE + "\n            with copyout():\n" + STORE,
        "nothing was computed",
    ),
    "used after its list": (
        "    sync_all()",
        "    with compute():\n        copy(t, p, 8)\n    sync_all()",
        "holds nothing here",
    ),
    "written in an outer list": (
        "    mine = 0.0",
        "    mine = 0.0\n    with compute():\n        fill(r, 0.0, 8)",
        "not stored after this",
    ),
    "too large for the unified buffer": (
        "t = alloc_ub(tile, f32)",
        "t = alloc_ub(50000, f32)",
        "make tiles smaller",
    ),
    "of no elements": ("g = alloc_ub(8, f32)", "g = alloc_ub(tile - tile, f32)", "has 0 elements"),
    "another type than its tensor": (
        "q = alloc_ub(tile, f32)",
        "q = alloc_ub(tile, f16)",
        "copies do not convert",
    ),
    "operands of two types": ("t = alloc_ub(tile, f32)", "t = alloc_ub(tile, f16)", "cast first"),
    "a comparison into floats": ("bits = alloc_ub(tile // 8, u8)", "bits = alloc_ub(tile, f32)", "writes u8"),
    # tensors and numbers
    "input written": ("store(w[core() * 8], g, 8)", "store(b[core() * 8], g, 8)", "is an input"),
    "output read": (LOAD, f"{LOAD}\n                load(p, y[at], n)", "is an output"),
    "input never loaded": (LOAD, LOAD.replace("b[at]", "a[at]"), "b is never loaded"),
    "inputs in another order": ("a: gm[f32], b: gm[f32]", "b: gm[f32], a: gm[f32]", "inputs are a, b"),
    "an attribute that does not exist": (
        "def host():",
        "def host(epsilon: f32):",
        "attributes of the operator",
    ),
    "a number that the host does not have": (
        "tile: i32):",
        "tile: i32, pitch: i32):",
        "neither assigns nor takes",
    ),
    "a name without a value": ("total = read(s, 0)", "total = totals", "no value anywhere"),
    "a count that is no whole number": ("adds(r, r, total, n)", "adds(r, r, total, n / 2)", "divide with //"),
    "a loop variable outside of its loop": (
        "    sync_all()",
        "    mine = at\n    sync_all()",
        "outside of its loop",
    ),
    "a float divided as a whole number": ("total = read(s, 0)", "total = mine // 2", "whole numbers"),
    "a name that C++ cannot have": ("    mine = 0.0", "    Mine = 0.0", "lower case"),
    "a number of the host assigned twice": ("    launch(", "    rows = 1\n    launch(", "once"),
    "a loop variable assigned": (LAST, f"{LAST}                at = 0\n", "assigned inside"),
    "workspace without elements": (", workspace=8 * vec_cores()", "", "workspace=elements"),
    "no cores": ("min(vec_cores(), 3)", "0", "cores must be 1"),
    "more cores than there are": ("min(vec_cores(), 3)", "64", "cores must be 1"),
    # found by running it
    "remainder of rows dropped (public softmax)": (
        "    first, count = share(rows)",
        "    count = rows // cores()\n    first = core() * count",
        "never written",
    ),
    "rows rounded up (its lowering)": (
        "    first, count = share(rows)",
        "    count = ceil_div(rows, cores())\n    first = core() * count",
        "elements",
    ),
    "row pitch of whole tiles (public softmax)": (
        STORE,
        STORE.replace("row * columns", "row * (tile * ceil_div(columns, tile))"),
        "elements",
    ),
    "core offset without the remainder (public leaky_relu)": (
        "    first, count = share(rows)",
        "    count = rows // cores() + (1 if core() < rows % cores() else 0)\n"
        "    first = core() * (rows // cores())",
        "as well",
    ),
    "whole tiles alone (public mse_loss)": (
        f"        for at, n in tiles(columns, tile):\n{COPY_IN}",
        "        for k in range(0, columns // tile):\n"
        f"            at = k * tile\n            n = tile\n{COPY_IN}",
        "never written",
    ),
    "no meeting before the sum (public mse_loss)": ("    sync_all()\n", "", "nobody wrote all of it"),
    "row pitch missing (public gather_elements)": (
        STORE,
        STORE.replace("row * columns + at", "row + at"),
        "as well",
    ),
    "a view between two blocks": ("gather(r, t, index, 0, n)", "add(r, t[3], t, n - 3)", "not on a boundary"),
    "beyond a buffer": ("mul(t, p, q, n)", "mul(t, p, q, n + tile)", "it has"),
    "beyond a tensor": (LOAD, LOAD.replace("b[at]", "b[at + 1]"), "it has 100 elements"),
    "before a tensor": (LOAD, LOAD.replace("b[at]", "b[at - 8]"), "from -8"),
    "never written": ("mul(t, p, q, n)", "mul(r, p, q, n)", "never written"),
    "work too small": ("v = alloc_ub(tile + 512, f32)", "v = alloc_ub(64, f32)", "it has 64 elements"),
    "gather beyond its buffer": ("muls(index, index, 4, tile)", "muls(index, index, 8, tile)", "gather"),
    "one element beyond": ("total = read(s, 0)", "total = read(s, 8)", "it has 8 elements"),
    "negative // ": ("mine = mine + read(s, 0)", "mine = mine + (off - 200) // 3", "not negative"),
    "no elements": ("adds(r, r, total, n)", "adds(r, r, total, n - n)", "of 0 elements"),
    "the same element by two cores": ("store(w[core() * 8], g, 8)", "store(w[0], g, 8)", "as well"),
    "lanes of a part": (
        "gather(r, t, index, 0, n)",
        "rows_to_lanes(r, t, 8, 16, n)",
        "multiple of 256",
    ),
    "lanes in place": ("gather(r, t, index, 0, n)", "rows_to_lanes(t, t, 8, 16, 256)", "while it writes it"),
    "rows between two blocks": (
        "gather(r, t, index, 0, n)",
        "lanes_to_rows(v, v[256], 1, 256)",
        "while it writes it",
    ),
    "padding of a store": (STORE, STORE.replace("r, n)", "r, n, pad=0.0)"), "expected store"),
    "room for less than a row": (
        LOAD,
        LOAD.replace("n)", "n, rows=1, pitch=columns, room=8)"),
        "room=8",
    ),
    "half an output": (STORE, f"                if row < 3:\n    {STORE}", "never written"),
}


def _refusal(text: str) -> str:
    with pytest.raises(StagedError) as caught:
        interpret(verified(text, SPEC), SPEC.cases[0], toy_inputs(SPEC, 1))
    return str(caught.value)


def test_the_program_that_faults_are_put_into_is_right():
    assert interpret(verified(RIGHT, SPEC), SPEC.cases[0], toy_inputs(SPEC, 1))


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_program_is_refused(name):
    old, new, told = FAULTS[name]
    assert old in RIGHT
    where = RIGHT.rindex(old) if old.startswith(" " * 16) else RIGHT.index(old)
    wrong = RIGHT[:where] + new + RIGHT[where + len(old) :]
    assert told in _refusal(wrong)
