"""Stands in for cmake on an operator project: has g++ read the sources, packs a library for the device."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ATTRIBUTE = re.compile(r'Attr\("(\w+)"\)[^;]*?\.(Float|Int)\(')
MEMBER = re.compile(r'(Input|Output)\("(\w+)"\)')
DIRECTIVE = re.compile(r"^// standin: (\w+)$", re.MULTILINE)
C_TYPES = {"Float": "double", "Int": "int64_t", "Tensor": "const aclTensor *"}
TYPES = re.compile(r'(Input|Output)\("(\w+)"\)[^;]*?DataType\(\{([^}]*)\}\)')
KEY = re.compile(r"TILING_KEY_IS\((\d+)\)")
OPTION_SCRIPT = "ascendc_gen_options.py"
CODED = ("float32", "float16", "int8", "int32", "uint8", "", "int16", "uint16", "uint32", "int64", "uint64")
ACL_TYPES = {**{name: code for code, name in enumerate(CODED)}, "double": 11, "bool": 12, "bfloat16": 27}
HOST_TYPES = {"FLOAT": "float32", "BF16": "bfloat16"}
CALLS = {"Float": "standinReal", "Int": "standinInteger"}


def sources(project: Path) -> list[Path]:
    return [path for side in ("op_host", "op_kernel") for path in sorted((project / side).rglob("*.cpp"))]


def configure(project: Path) -> int:
    variables = json.loads((project / "CMakePresets.json").read_text())["configurePresets"][0][
        "cacheVariables"
    ]
    if not Path(variables["ASCEND_CANN_PACKAGE_PATH"]["value"]).is_dir():
        sys.stderr.write("no toolkit\n")
        return 1
    if "default" not in sys.argv[-1] or not options_are_known(project):
        sys.stderr.write("Unknown CMake command, or options for no target\n")
        return 1
    (project / "build_out").mkdir()
    return select_kernels(project)


def select_kernels(project: Path) -> int:
    """Note which kernels are built, by the options that the toolkit or the project knows."""
    call = (project / "op_kernel" / "CMakeLists.txt").read_text().splitlines()[0]
    toolkit = Path(__file__).parents[1]
    (script,) = [*project.rglob(OPTION_SCRIPT), *toolkit.rglob(OPTION_SCRIPT)][:1]
    known = script.read_text()
    given = dict(re.findall(r"(--tiling_key|--input-param-file)=([^ )]+)", call))
    if any(option not in known for option in given) or (
        "--input-param-file" in given and "COMPUTE_UNIT ascend910b OPTIONS" not in call
    ):
        sys.stderr.write(f"{script.name} does not take {given}\n")
        return 1
    columns, keys = everything(project)
    if "--input-param-file" in given:
        described = json.loads(Path(given["--input-param-file"]).read_text())
        (node,) = described["op_list"]
        parameters = [*node["inputs"], *node["outputs"]]
        own = [*[each[1] for each in TYPES.findall(host_text(project))]]
        if [each["name"] for each in parameters] != own or described["op_type"] != op_type_of(project):
            sys.stderr.write("the parameters are not those of the operator\n")
            return 1
        columns = [column for column in columns if column == [each["dtype"] for each in parameters]]
    if "--tiling_key" in given:
        keys = [key for key in keys if key in given["--tiling_key"].split(",")]
    lines = [f"column {' '.join(str(ACL_TYPES[each]) for each in column)}\n" for column in columns]
    (project / "build_out" / "kernels").write_text("".join([*lines, *(f"key {key}\n" for key in keys)]))
    return 0


def host_text(project: Path) -> str:
    return "\n".join(path.read_text() for path in sorted((project / "op_host").glob("*.cpp")))


def op_type_of(project: Path) -> str:
    return (project / "type").read_text()


def everything(project: Path) -> tuple[list[list[str]], list[str]]:
    """Return the columns of element types of the definition, and the tiling keys of the kernel."""
    lists = [
        [HOST_TYPES.get(word, word.lower()) for word in re.findall(r"DT_(\w+)", types)]
        for _, _, types in TYPES.findall(host_text(project))
    ]
    kernel = "\n".join(path.read_text() for path in sorted((project / "op_kernel").rglob("*.cpp")))
    return [list(column) for column in zip(*lists, strict=True)], sorted(set(KEY.findall(kernel))) or ["0"]


def options_are_known(project: Path) -> bool:
    """Whether options are set as the toolkit's template has it, for its target, before the kernels."""
    text = (project / "op_kernel" / "CMakeLists.txt").read_text()
    template = (Path(__file__).parents[1] / "template").read_text()
    given = r"\w+( COMPUTE_UNIT \w+)? OPTIONS -.*\)\n[\s\S]*"
    own = {
        "npu_op": rf"npu_op_kernel_options\(ascendc_kernels {given}npu_op_kernel_library",
        "add_ops": rf"add_ops_compile_options\({given}add_kernels_compile",
    }
    return re.match(own[template], text) is not None


def compile_sources(project: Path) -> int:
    """Have the preprocessor read each source without its includes, as a copy like the real build makes."""
    if "// standin: lacks_compiler" in host_text(project):
        sys.stderr.write("sh: asc_opc: command not found\nmake: *** [kernels] Error 127\n")
        return 2
    if "// standin: needs_all_kernels" in host_text(project) and build_is_narrow(project):
        sys.stderr.write("a kernel was not generated\n")
        return 1
    for path in sources(project):
        text = re.sub(r"(?m)^\s*#\s*include.*$", "", path.read_text())
        folder = path.parent.name if path.parent.name == "op_host" else "kernel_copies"
        copy = project / "build_out" / folder / path.name
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(text)
        if "// standin: slow_build" in text:
            subprocess.run(["tail", "-f", "/dev/null"], check=False)
        done = subprocess.run(["g++", "-E", "-o", "/dev/null", str(copy)], check=False)
        if done.returncode != 0:
            return 1
    return 0


def build_is_narrow(project: Path) -> bool:
    columns, keys = everything(project)
    return len((project / "build_out" / "kernels").read_text().splitlines()) < len(columns) + len(keys)


def package(project: Path) -> int:
    op_type = op_type_of(project)
    texts = [path.read_text() for path in sources(project)]
    vendor = project / "build_out" / "vendor"
    for folder in ("op_api/lib", "op_api/include", "standin"):
        (vendor / folder).mkdir(parents=True)
    for side in ("op_host", "op_kernel"):
        shutil.copytree(project / side, vendor / "standin" / "src" / side)
    for path in (vendor / "standin" / "src").rglob("*.cpp"):
        path.write_text(DIRECTIVE.sub("", path.read_text()))
    (vendor / "standin" / "type").write_text(op_type)
    shutil.copy(project / "build_out" / "kernels", vendor / "standin" / "kernels")
    directives = [word for text in texts for word in DIRECTIVE.findall(text)]
    (vendor / "standin" / "directives").write_text("".join(f"{word}\n" for word in directives))
    declaration, definition = interface(op_type, "\n".join(texts))
    (vendor / "op_api" / "include" / "aclnn_generated.h").write_text(declaration + ";\n")
    source = project / "build_out" / "opapi.cpp"
    source.write_text(definition)
    library = vendor / "op_api" / "lib" / "libcust_opapi.so"
    done = subprocess.run(["g++", "-shared", "-fPIC", str(source), "-o", str(library)], check=False)
    run = project / "build_out" / "custom_opp_linux_any.run"
    run.write_text(
        '#!/bin/sh\nfor word; do case "$word" in --install-path=*) target="${word#*=}";; esac; done\n'
        f'mkdir -p "$target/vendors" && cp -r "{vendor}" "$target/vendors/customize"\n'
    )
    run.chmod(0o755)
    return done.returncode


def interface(op_type: str, text: str) -> tuple[str, str]:
    """Return declaration and definition of the call, parameters in the order inputs, attributes, outputs."""
    members = MEMBER.findall(text)
    inputs = [name for kind, name in members if kind == "Input"]
    outputs = [name for kind, name in members if kind == "Output"]
    parameters = [("Tensor", name) for name in inputs]
    parameters += [(kind, name) for name, kind in ATTRIBUTE.findall(text)]
    parameters += [("Tensor", name) for name in outputs]
    listed = ", ".join(f"{C_TYPES[kind]} {name}" for kind, name in parameters)
    declaration = (
        f"int aclnn{op_type}GetWorkspaceSize({listed}, uint64_t *workspaceSize, aclOpExecutor **executor)"
    )
    notes = []
    for kind, name in parameters:
        call = CALLS.get(kind, "standinInput" if name in inputs else "standinOutput")
        notes.append(f'    {call}(*executor, "{name}", {name});\n')
    definition = (
        '#include <cstdint>\nextern "C" {\nstruct aclTensor;\nstruct aclOpExecutor;\n'
        "aclOpExecutor *standinBegin();\n"
        "int standinTiling(aclOpExecutor *);\nint standinLaunch(aclOpExecutor *, const char *);\n"
        "void standinInput(aclOpExecutor *, const char *, const aclTensor *);\n"
        "void standinOutput(aclOpExecutor *, const char *, const aclTensor *);\n"
        "void standinReal(aclOpExecutor *, const char *, double);\n"
        "void standinInteger(aclOpExecutor *, const char *, int64_t);\n"
        f"{declaration} {{\n    *executor = standinBegin();\n    *workspaceSize = 1024;\n{''.join(notes)}"
        "    return standinTiling(*executor);\n}\n"
        f"int aclnn{op_type}(void *, uint64_t, aclOpExecutor *executor, void *) {{\n"
        f'    return standinLaunch(executor, "{op_type}");\n}}\n}}\n'
    )
    return declaration, definition


def main(arguments: list[str]) -> int:
    """Configure, or build a target."""
    if arguments == ["--version"]:
        print("cmake version 3.22.1")
        return 0
    if arguments[:1] == ["-S"]:
        return configure(Path.cwd())
    target = arguments[arguments.index("--target") + 1]
    return {"binary": compile_sources, "package": package}[target](Path.cwd())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
