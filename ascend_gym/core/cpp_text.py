"""Comments, strings and characters of C++ text, for whoever reads sources by pattern.

Where structure matters, ``ascend_gym.rewrites.syntax`` parses with tree-sitter; this is for text that
need not parse, such as definitions among macros, or launches that are no C++.
"""

from __future__ import annotations

import re

# What is not closed reaches to the end of the line or text, so that no part is looked at again and again.
# A digit separator is not a character literal.
_COMMENT_OR_LITERAL = (
    r"(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))"
    r'|(?:u8|[uUL])?R"(?P<delimiter>[^\s()\\]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z)'
    r'|"(?:[^"\\\n]|\\.|\\\Z)*(?:"|(?=\n)|\Z)'
    r"|(?<![0-9a-zA-Z_])(?:u8|[uUL])?'(?:[^'\\\n]|\\.|\\\Z)*(?:'|(?=\n)|\Z)"
)
_NO_CODE = re.compile(_COMMENT_OR_LITERAL, re.DOTALL)
INCLUDE_DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
"""A directive that includes a file; group 1 is the file as it is named."""
_TOKEN = re.compile(
    rf"{_COMMENT_OR_LITERAL}|(?P<blank>\s+)|\w+|(?:(?!//|/\*)[-+*/%&|^<>=!~:.?#])+|.", re.DOTALL
)


def without_comments(text: str) -> str:
    """Return C++ text with comments replaced by a space; string literals are kept."""
    return _NO_CODE.sub(lambda found: " " if found["comment"] else found[0], text)


def code_only(text: str) -> str:
    """Return C++ text with comments, strings and characters replaced by blanks; positions are preserved."""
    return _NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def code_tokens(text: str) -> list[str]:
    """Return the tokens of C++ code: no comments, no blanks but the newline that ends a directive."""
    tokens: list[str] = []
    in_directive, at_line_start = False, True
    for match in _TOKEN.finditer(text):
        token = match[0]
        ends_line = "\n" in token and match["comment"] is None and match["blank"] is not None
        if ends_line and in_directive and not text.endswith("\\", 0, match.start()):
            tokens.append("\n")
            in_directive = False
        if match["comment"] is None and match["blank"] is None:
            in_directive = in_directive or (at_line_start and token.startswith("#"))
            at_line_start = False
            tokens.append(token)
        at_line_start = at_line_start or ends_line
    return tokens
