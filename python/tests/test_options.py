"""An option stands in three places: the signature, the table, and the field of the extension."""

import ast
import inspect
import pathlib
import pickle
import re

import pytest

import procwright
from procwright import DEVNULL, INHERIT, _keywords
from procwright._options import COMMON, RUN, SPAWN
from procwright._setup import SETUP

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"

#: Parameters that Python makes into others of the core, or keeps to itself.
TEXT = {"text", "encoding", "errors"}
CALLS = {"on_stdout_line", "on_stderr_line", "on_timeout", "tee"}
BOTH = {"args", "shell", "input", "stdin", *CALLS, *TEXT}
KEPT = {
    procwright.run: BOTH | {"on_line", "check"},
    procwright.spawn: BOTH | {"max_length", "too_long"},
}
#: Fields that are made of them.
MADE = {"argv", "stdin", "tee", "taps"}
#: Fields of which no caller can say something: a `Fake` says them of what it starts.
OF_FAKES = {procwright.run: set(), procwright.spawn: {"shown_as"}}
STRUCTS = {procwright.run: "RunOptions", procwright.spawn: "SpawnOptions"}
TABLES = {procwright.run: RUN, procwright.spawn: SPAWN}


def fields(struct):
    text = (SOURCE / "options.rs").read_text()
    body = re.search(rf"struct {struct}(?:<'py>)? \{{\n(.*?)\n\}}", text, re.DOTALL)
    return set(re.findall(r"^    (?:pub\(crate\) )?(\w+):", body[1], re.MULTILINE))


def parameters(function):
    """The parameters, but what is there to refuse those of others."""
    found = dict(inspect.signature(function).parameters)
    assert found.pop("unknown").kind is inspect.Parameter.VAR_KEYWORD
    assert found.pop("words").kind is inspect.Parameter.VAR_POSITIONAL
    return found


@pytest.mark.parametrize("function", [procwright.run, procwright.spawn])
def test_an_option_is_in_all_places(function):
    table = TABLES[function]
    assert parameters(function).keys() == table.keys() | SETUP.keys() | KEPT[function]
    native = fields("CommonOptions") | fields(STRUCTS[function])
    assert native == table.keys() | MADE | OF_FAKES[function] | {"setup"}


def test_both_take_the_common_ones():
    signatures = [inspect.signature(function) for function in TABLES]
    for name in (COMMON.keys() | SETUP.keys()) - {"stdout", "stderr"}:
        defaults = [signature.parameters[name].default for signature in signatures]
        annotations = {signature.parameters[name].annotation for signature in signatures}
        assert defaults[0] == defaults[1], name
        assert len(annotations) == 1, name


@pytest.mark.parametrize("function", [procwright.run, procwright.spawn])
@pytest.mark.parametrize(
    ("args", "options", "text"),
    [
        ([], {}, "args is [], which is empty: "),
        (["a", "b\0c"], {}, "args[1] is 'b\\x00c', which contains a NUL byte"),
        (["a"], {"pass_fds": [1]}, "pass_fds is [1], which would replace descriptor 1"),
        (["a"], {"umask": 0o1777}, "umask is 1023: pass permission bits"),
        (["a"], {"pty": True, "stdout": DEVNULL}, "stdout is DEVNULL, and with pty it is"),
        (["a"], {"pty": True, "stderr": INHERIT}, "stderr is INHERIT, and with pty it is"),
        (["a"], {"pty": True, "merged": True}, "merged is True, and a pty is one stream"),
        (["a"], {"pty": True, "process_group": 0}, "process_group is 0, and a program on a pty"),
    ],
)
def test_the_core_refuses_and_python_says_it(function, args, options, text):
    with pytest.raises(procwright.InvalidValue) as caught:
        function(args, **options)
    assert str(caught.value).startswith(text)


def test_what_spawn_alone_says():
    for options, text in [
        ({"pty": True, "overflow": "block"}, "overflow is 'block', the bare pipe"),
        ({"pty": True, "stdin": INHERIT}, "stdin is INHERIT, and nobody"),
        (
            {"merged": True, "overflow": "block"},
            'merged is True, which cannot be had with overflow="block"',
        ),
    ]:
        with pytest.raises(procwright.InvalidValue) as caught:
            procwright.spawn(["a"], **options)
        assert str(caught.value).startswith(text)


@pytest.mark.parametrize("function", [procwright.run, procwright.spawn])
@pytest.mark.parametrize("option", ["user", "group", "extra_groups"])
def test_the_number_that_means_no_change(function, option):
    # With root's permissions the program would stay root.
    value = [1, 2**32 - 1] if option == "extra_groups" else 2**32 - 1
    with pytest.raises(procwright.InvalidValue, match=rf"^{option}(\[1\])? is 4294967295: pass"):
        function(["true"], **{option: value})


def overloads(function):
    """The parameters of each overload, those of its **options among them, by their types."""
    text = (ROOT / "procwright" / "_overloads.pyi").read_text()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
            arguments = [*node.args.args, *node.args.kwonlyargs]
            defaults = [ast.unparse(one) for one in node.args.kw_defaults if one is not None]
            written = {one.arg for one in arguments}
            kind = node.args.kwarg.annotation
            if isinstance(kind, ast.Name) and kind.id == "Any":
                # For options of which nothing is known, which no call fits that names them.
                assert "no_such_parameter" in written
                assert not defaults
            elif isinstance(kind, ast.Name):
                # The last, which has each by its name, and takes slips.
                yield written, {}, defaults
            else:
                yield written, getattr(_keywords, kind.slice.id[1:]).__annotations__, defaults


@pytest.mark.parametrize("function", [procwright.run, procwright.spawn])
def test_types_know_the_parameters(function):
    signature = parameters(function)
    cases = list(overloads(function))
    assert cases
    for written, options, defaults in cases:
        assert written | options.keys() == signature.keys()
        assert not written & options.keys()
        # `...` stands for that of the signature.
        assert set(defaults) <= {"...", "None", "False", "-1"}
        for name, annotation in options.items():
            # A callback, a copy and input have a type by that of the text.
            if name not in {"input", "tee", "on_line", "on_stdout_line", "on_stderr_line"}:
                assert annotation.__forward_arg__ == signature[name].annotation, name


def names_of(keywords):
    """The names of a type of options, those that it inherits among them."""
    return dict.fromkeys(getattr(_keywords, keywords).__annotations__)


def test_types_know_the_parameters_of_map():
    signature = dict(inspect.signature(procwright.map).parameters)
    signature.pop("options")
    signature.pop("items")
    of_commands = names_of("MapCommand")
    assert not signature.keys() & of_commands.keys()
    cases = list(overloads(procwright.map))
    assert cases
    for written, options, _ in cases:
        if options:
            assert not written & signature.keys() - {"commands"}
        else:
            assert written == signature.keys() | of_commands.keys()
    for name in ("MapBytes", "MapText"):
        options = names_of(name)
        written = cases[0][0]
        assert written | options.keys() == signature.keys() | of_commands.keys()
        assert not written & options.keys()


@pytest.mark.parametrize("function", [procwright.pipeline, procwright.spawn_pipeline])
def test_types_know_the_parameters_of_pipeline(function):
    signature = dict(inspect.signature(function).parameters)
    signature.pop("options")
    # What takes all that are left by place is none of those by name.
    signature.pop("stages")
    cases = list(overloads(function))
    assert cases
    for written, options, _ in cases:
        assert not written & options.keys()
        assert written | options.keys() == signature.keys() | names_of("Program").keys()
        for name, annotation in options.items():
            # Input has a type by that of the text.
            if name in signature and name != "input":
                assert annotation.__forward_arg__ == signature[name].annotation, name


def test_types_know_the_parameters_of_cmd():
    both = parameters(procwright.run) | parameters(procwright.spawn)
    del both["args"]
    assert names_of("CommandOptions").keys() == both.keys()
    assert names_of("OpenCommandOptions").keys() < both.keys()
    joined = inspect.signature(procwright.pipeline).parameters
    spawned = inspect.signature(procwright.spawn_pipeline).parameters
    of_whole = {*joined, *spawned, *names_of("Program")} - {"stages", "options"}
    says_type = {"input", "stdin", "stdout", "stderr", "text", "encoding", "errors"}
    assert names_of("OpenPipelineOptions").keys() == of_whole - says_type


def test_what_map_gives_takes_types():
    assert str(procwright.Map[str]) == "procwright._map.Map[str]"
    assert procwright.Ended[str, None].__origin__ is procwright.Ended


def test_a_class_that_takes_types_is_that_class():
    result = procwright.run(["true"])
    assert str(procwright.Result[str]) == "procwright._result.Result[str]"
    assert procwright.Result[str, None].__origin__ is procwright.Result
    assert isinstance(result, procwright.Result)
    assert procwright.Child[bytes].__origin__ is procwright.Child
    assert procwright.MergedLine[str]("stdout", 0.0, "x").line == "x"
    assert pickle.loads(pickle.dumps(procwright.Result[str])) == procwright.Result[str]
