"""The help of commands with many options, in sections.

It is plain text: in the panels of Rich, terminals of 80 columns cut the names of options.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

RUN = "Run"
LIMITS = "Limits"
MODEL = "Model"
EVALUATION = "Evaluation"
ASCEND_OPTIMIZER = "AscendOptimizer"
ASCEND_CRAFT = "AscendCraft"
OTHER_METHODS = "Other methods"
_OTHERS = "Options"


class SectionedCommand(TyperCommand):
    """A command whose help has its options below the headings that their ``rich_help_panel`` names."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections; options without a heading come last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                others = "Arguments" if parameter.param_type_name == "argument" else _OTHERS
                heading = getattr(parameter, "rich_help_panel", None) or others
                sections.setdefault(heading, []).append(record)
        for heading, records in sorted(sections.items(), key=lambda section: section[0] == _OTHERS):
            with formatter.section(heading):
                formatter.write_dl(records)
