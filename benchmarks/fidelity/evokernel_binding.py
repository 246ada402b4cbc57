"""Reads what a binding to PyTorch (op.cpp of EvoKernel) does, as Python that this process can run.

Only what such bindings are made of is understood: conditions, checks, shapes, conversions, empty tensors and
one call of an operator. Whatever else is there is an error with the text that was not understood.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)
_REGISTERED = re.compile(r"\.(?:impl|def)\s*\(\s*\"\"\s*,\s*(?:TORCH_FN\s*\(\s*|&\s*)?(?P<name>\w+)")
_FUNCTION = re.compile(
    r"(?:static\s+|inline\s+|constexpr\s+)*(?:const\s+)?(?P<type>[\w:]+(?:<[^;{}()]*>)?)\s*[&*]?\s+(?P<name>\w+)\s*\("
)
_DEFAULT = re.compile(
    r'py::arg\("(?P<name>\w+)"\)\s*=\s*(?P<value>[-\w.]+)|(?P<named>\w+)=(?P<given>[-\w.]+)'
)
_TYPE = (
    r"(?:(?:const|constexpr|static|unsigned)\s+)*"
    r"(?:auto|bool|int|float|double|long|char|size_t|u?int\d+_t|(?:at|torch|c10|std)::\w+)(?:\s*<[^;=()]*>)?"
    r"(?:\s+const)?(?:\s*[&*]+\s*|\s+)"
)
_DECLARED = re.compile(rf"^{_TYPE}(?P<name>\w+)\s*(?P<rest>.*)$", re.S)
_UNPACKED = re.compile(r"^(?:const\s+)?auto\s*&?&?\s*\[(?P<names>[\w\s,]+)\]\s*=\s*(?P<rest>.*)$", re.S)
_LAMBDA = re.compile(
    rf"^{_TYPE}(?P<name>\w+)\s*=\s*\[[^\]]*\]\s*\((?P<parameters>[^()]*)\)[^{{]*\{{(?P<body>.*)\}}$", re.S
)
_OF_PYTHON = re.compile(r"\b(?:in|is|as|def|del|from|pass|with|lambda|yield|None|and|or|not|import|global)\b")
_OPEN, _CLOSE = "({[", ")}]"
_OF_DEVICE = re.compile(r"device|privateuse|is_npu|is_cpu|is_cuda|layout", re.I)
_WORDS = {"true": "True", "false": "False", "nullptr": "None", "&&": " and ", "||": " or "}


class NotUnderstoodError(ValueError):
    """A binding has something that is not understood; the message is its text."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a binding: its name, its kind (``tensor`` or ``number``), whether it may be missing."""

    name: str
    kind: str
    optional: bool


@dataclass(frozen=True)
class Binding:
    """What a binding does.

    Attributes:
        entry: name of its function.
        parameters: of that function.
        defaults: values that it states for numbers.
        python: all its functions, as Python. It uses ``check``, ``execute``, ``divide``, ``at``, ``c10``,
            ``std`` and ``torch``.
    """

    entry: str
    parameters: tuple[Parameter, ...]
    defaults: dict[str, float]
    python: str


def read_binding(text: str) -> Binding:
    """Return what a binding does.

    Raises:
        NotUnderstoodError: something of it is not understood.
    """
    defaults = {
        found["name"] or found["named"]: float(found["value"] or found["given"])
        for found in _DEFAULT.finditer(text)
        if re.fullmatch(r"-?[\d.]+(?:e-?\d+)?", found["value"] or found["given"])
    }
    plain = _COMMENT.sub(lambda found: '""' if found[0][0] == '"' else " ", text)
    plain = _OF_PYTHON.sub(lambda found: f"{found[0]}_", plain)
    entries = [found["name"] for found in _REGISTERED.finditer(plain)]
    functions = {name: (parameters, body) for name, parameters, body in _functions(plain)}
    if not entries or entries[-1] not in functions:
        raise NotUnderstoodError("no function is registered")
    lines = []
    for name, (parameters, body) in functions.items():
        lines.append(f"def {name}({', '.join(one.name for one in parameters)}):")
        lines += [f"    {line}" for line in [*_block(body), "pass"]]
    return Binding(entries[-1], functions[entries[-1]][0], defaults, _divided("\n".join(lines)))


def _functions(text: str) -> Iterator[tuple[str, tuple[Parameter, ...], str]]:
    at = 0
    while found := _FUNCTION.search(text, at):
        end = _matching(text, found.end() - 1)
        brace = re.compile(r"\s*\{").match(text, end + 1)
        if found["type"] in ("return", "else", "new") or not brace:
            at = found.end()
            continue
        at = _matching(text, brace.end() - 1) + 1
        yield found["name"], tuple(_parameters(text[found.end() : end])), text[brace.end() : at - 1]


def _parameters(text: str) -> Iterator[Parameter]:
    for part in _split(text, ","):
        words = part.partition("=")[0].strip()
        if words:
            name = re.findall(r"\w+", words)[-1]
            kind = "tensor" if "Tensor" in words and "vector" not in words else "number"
            yield Parameter(name, kind, "optional" in words)


def _matching(text: str, start: int) -> int:
    """Return where the bracket at a place is closed."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in _OPEN) - (text[at] in _CLOSE)
        if depth == 0:
            return at
    raise NotUnderstoodError(f"a bracket is not closed: {text[start : start + 60]}")


def _split(text: str, separator: str) -> list[str]:
    """Return the parts of a text between separators outside of brackets."""
    parts, depth, last, angle = [], 0, 0, 0
    for at, sign in enumerate(text):
        depth += (sign in _OPEN) - (sign in _CLOSE)
        angle += (
            bool(re.match(r"(?<=\w)<(?=[\w:]+[>,<])", text[at:])) if separator == "," and sign == "<" else 0
        )
        if text.startswith(separator, at) and depth == 0:
            parts.append(text[last:at])
            last = at + len(separator)
    return [*parts, text[last:]]


def _statements(text: str) -> Iterator[str]:
    """Yield statements: one ends with a semicolon or with the brace of its block."""
    at = 0
    while rest := re.compile(r"\s*\S").match(text, at):
        at = rest.end() - 1
        if text[at] == "{":
            end = _matching(text, at)
        elif head := re.compile(r"(?:else\s+)?(?:if|for)\s*(?:constexpr\s*)?(?=\()").match(text, at):
            end = _end_of_body(text, _matching(text, head.end()) + 1)
        elif head := re.compile(r"else\b").match(text, at):
            end = _end_of_body(text, head.end())
        else:
            end = _semicolon(text, at)
        yield text[at : end + 1].rstrip(";")
        at = end + 1


def _end_of_body(text: str, at: int) -> int:
    brace = re.compile(r"\s*\{").match(text, at)
    return _matching(text, brace.end() - 1) if brace else _semicolon(text, at)


def _semicolon(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in _OPEN) - (text[at] in _CLOSE)
        if text[at] == ";" and depth == 0:
            return at
    raise NotUnderstoodError(text[start : start + 80])


def _block(text: str) -> Iterator[str]:
    for statement in _statements(text):
        yield from _lines(statement.strip())


def _lines(text: str) -> Iterator[str]:
    """Yield the Python lines of one statement."""
    if not text or re.match(r"(?:using|typedef|\(void\)|#)", text):
        return
    if text[0] == "{":
        yield from _block(text[1:-1])
    elif head := re.match(r"(?P<word>else\s+if|if|else|for)\b\s*(?:constexpr\s*)?", text):
        yield from _branch(head["word"], text[head.end() :])
    elif found := _LAMBDA.match(text):
        yield f"def {found['name']}({', '.join(one.name for one in _parameters(found['parameters']))}):"
        yield from (f"    {line}" for line in [*_block(found["body"]), "pass"])
    elif found := re.match(r"(?:TORCH_CHECK|TORCH_INTERNAL_ASSERT)\s*\((?P<all>.*)\)$", text, re.S):
        condition = _split(found["all"], ",")[0]
        if not _OF_DEVICE.search(condition):
            yield f"check({_expression(condition)}, {' '.join(condition.split())!r})"
    elif found := re.match(r"EXEC_NPU_CMD\s*\((?P<all>.*)\)$", text, re.S):
        name, *arguments = (_expression(part) for part in _split(found["all"], ","))
        yield f"execute({name!r}, [{', '.join(arguments)}])"
    elif text.startswith("return"):
        yield f"return {_expression(text[6:]) or 'None'}"
    elif found := _UNPACKED.match(text):
        yield f"{found['names']} = {_expression(found['rest'])}"
    elif found := re.match(
        r"(?P<name>\w+(?:\[[^\]]*\])?)\s*(?P<sign>[-+*/]?=)(?!=)(?P<rest>.*)$", text, re.S
    ):
        yield f"{found['name']} {found['sign']} {_expression(found['rest'])}"
    elif found := _DECLARED.match(text):
        yield _declared(found["name"], found["rest"].strip())
    else:
        yield _expression(text)


def _declared(name: str, rest: str) -> str:
    if not rest:
        return f"{name} = None"
    if rest[0] in "({":
        return f"{name} = {_expression(rest[1:-1]) or '[]'}"
    if rest[0] != "=":
        raise NotUnderstoodError(f"{name} {rest}")
    several = _split(rest[1:], ",")  # one declaration may have several names
    return "; ".join(
        [f"{name} = {_expression(several[0])}", *("{} = {}".format(*_named(one)) for one in several[1:])]
    )


def _named(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip(), _expression(value)


def _branch(word: str, rest: str) -> Iterator[str]:
    body = rest
    head = "else:"
    if word != "else":
        end = _matching(rest, 0)
        condition, body = rest[1:end], rest[end + 1 :]
        head = f"{'elif' if word.startswith('else') else 'if'} {_expression(condition)}:"
    if word == "for":
        counted = re.match(
            r"\s*\w+\s+(?P<name>\w+)\s*=\s*(?P<low>[^;]+);\s*(?P=name)\s*<\s*(?P<high>[^;]+);", condition
        )
        if not counted:
            raise NotUnderstoodError(f"for ({condition})")
        head = (
            f"for {counted['name']} in range({_expression(counted['low'])}, {_expression(counted['high'])}):"
        )
    yield head
    yield from (f"    {line}" for line in [*_lines(body.strip().rstrip(";")), "pass"])


def _expression(text: str) -> str:
    """Return an expression as Python."""
    text = re.sub(r"^\*(?=\w)", "", " ".join(text.split()))  # what an optional holds
    chosen = _split(text, "?")
    if len(chosen) > 1:
        yes, no = _split("?".join(chosen[1:]), " : ") if " : " in text else ("", "")
        if not yes:
            raise NotUnderstoodError(text)
        return f"({_expression(yes)} if {_expression(chosen[0])} else {_expression(no)})"
    text = re.sub(r"\b(?:static_cast|reinterpret_cast)<\s*(?:double|float)\s*>", "float", text)
    text = re.sub(r"\bstatic_cast<[^<>]*>", "int", text)
    text = re.sub(
        r"(?:c10::|at::|std::)(?:IntArrayRef|vector<[^<>]*>|ArrayRef<[^<>]*>)\s*(?=[({])", "list", text
    )
    text = re.sub(r"(?<=\w)<(?:[\w:]+)>(?=\(|::)", "", text)
    text = re.sub(r"\((?:u?int\d*(?:_t)?|size_t|double|float|long)\)(?=[\w(])", "", text)
    text = re.sub(r"\b(\d[\d.]*(?:e[-+]?\d+)?)(?:f|F|LL|ll|ULL|L|u|U|l)\b", r"\1", text)
    pieces, at = [], 0
    for found in re.finditer(r"[({]", text):
        if found.start() < at:
            continue
        end = _matching(text, found.start())
        inner = ", ".join(_expression(part) for part in _split(text[found.end() : end], ",") if part.strip())
        brackets = "()" if found[0] == "(" else "[]"
        if text[: found.start()].endswith("list") and found[0] == "{":
            brackets, inner = "()", f"[{inner}]"
        pieces += [_words(text[at : found.start()]), brackets[0], inner, brackets[1]]
        at = end + 1
    return "".join([*pieces, _words(text[at:])]).strip()


def _words(text: str) -> str:
    text = re.sub(r"\b(?:true|false|nullptr)\b|&&|\|\|", lambda found: _WORDS[found[0]], text)
    text = re.sub(r"!(?!=)", " not ", text)
    return text.replace("::", ".").replace("->", ".")


class _Divided(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Turn a division into a call, which tells integers and floats apart."""
        self.generic_visit(node)
        if isinstance(node.op, ast.Div):
            return ast.Call(ast.Name("divide", ast.Load()), [node.left, node.right], [])
        return node


def _divided(python: str) -> str:
    try:
        return ast.unparse(ast.fix_missing_locations(_Divided().visit(ast.parse(python))))
    except SyntaxError as error:
        raise NotUnderstoodError(f"{error.msg}: {(error.text or '').strip()}") from error
