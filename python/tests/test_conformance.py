"""The cases that every front end must pass, read from conformance/run.json and its neighbours."""

import json
import os
import pathlib
import signal
from itertools import groupby

import pytest

import procwright
from procwright._setup import SETUP

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = [
    case
    for case in json.loads((ROOT / "conformance" / "run.json").read_text())["cases"]
    if "python" not in case.get("without", {})
]
SAME = {
    "timeout", "idle_timeout", "until", "env", "extra_env", "cwd", "umask", "rlimits",
    "shell", "text", "merged", "check", "ok_codes", *SETUP,
}  # fmt: skip
STOP = {"signal", "grace", "scope"}
SINKS = {"merged": procwright.STDOUT, "null": procwright.DEVNULL}
ERRORS = {
    "failed": procwright.CalledProcessError,
    "timeout": procwright.TimeoutExpired,
    "idle_timeout": procwright.IdleTimeout,
    "output_limit": procwright.OutputLimitExceeded,
}


MAPS = [
    case
    for case in json.loads((ROOT / "conformance" / "map.json").read_text())["cases"]
    if "python" not in case.get("without", {})
]
MAP_OPTIONS = {
    "parallel", "stop_after_failures", "deadline", "timeout", "cwd", "extra_env", "ok_codes",
}  # fmt: skip
COUNTS = {"succeeded", "failed", "stopped", "succeeded_before", "failed_before", "unknown"}

PIPELINES = [
    case
    for case in json.loads((ROOT / "conformance" / "pipeline.json").read_text())["cases"]
    if "python" not in case.get("without", {})
]


@pytest.fixture(scope="module")
def results():
    """How each case went; written for ci/conformance.py."""
    yield from written("python.json")


@pytest.fixture(scope="module")
def map_results():
    """How each case of a map went."""
    yield from written("map-python.json")


@pytest.fixture(scope="module")
def pipeline_results():
    """How each case of a pipeline went."""
    yield from written("pipeline-python.json")


def written(file):
    results = {}
    yield results
    folder = pathlib.Path(os.environ.get("CONFORMANCE_RESULTS", ROOT / "target" / "conformance"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(json.dumps(results, indent=2))


def options(given):
    given = dict(given)
    kwargs = {name: given.pop(name) for name in SAME & given.keys()}
    stop = {name: given.pop(name) for name in STOP & given.keys()}
    if stop:
        kwargs["stop"] = procwright.Stop(**stop)
    # As a user would type it.
    kwargs |= {name: given.pop(name) for name in {"stop"} & given.keys()}
    if "limit" in given and "beyond" not in given:
        kwargs["limit"] = given.pop("limit")
    if "limit" in given:
        beyond = {"head_and_tail": "ends", "fail": "fail"}[given.pop("beyond")]
        kwargs["limit"] = procwright.Limit(given.pop("limit"), beyond)
    for name in ("stdout", "stderr"):
        if name in given:
            kwargs[name] = SINKS[given.pop(name)]
    if "pty" in given:
        kwargs["pty"] = tuple(given.pop("pty"))
    kwargs["on_timeout"] = "raise" if given.pop("raise", False) else "return"
    assert not given, given
    return kwargs


def fact(name, result):
    def text(data):
        return data if isinstance(data, str) else data.decode()

    out, err = result.stdout_info, result.stderr_info
    return {
        "status": lambda: {
            "exited": {"exited": result.status.code},
            "signaled": {"signaled": result.status.signal},
        }[result.status.kind],
        "reason": lambda: result.reason,
        "stdout": lambda: text(result.stdout),
        "stderr": lambda: text(result.stderr),
        "stdout_hex": lambda: result.stdout.hex(),
        "stderr_hex": lambda: result.stderr.hex(),
        "stdout_bytes": lambda: len(result.stdout),
        "stderr_bytes": lambda: len(result.stderr),
        "stderr_info": lambda: err and "some",
        "stdout_dropped": lambda: out.dropped_bytes,
        "stderr_dropped": lambda: err.dropped_bytes,
        "merged": lambda: [
            [stream, b"".join(piece for _, piece in pieces).decode()]
            for stream, pieces in groupby(result.merged, lambda one: one[0])
        ],
        "ambiguous": lambda: any(piece.ambiguous for piece in result.merged),
        "complete": lambda: out.complete,
        "held": lambda: bool(out.held_by),
        "survivors": lambda: len(result.survivors),
    }[name]()


def outcome(argv, kwargs, expected, run):
    """The result, and the error that is expected."""
    error = expected.pop("error", None)
    if error is None:
        try:
            return run(argv, **kwargs)
        except procwright.OutputLimitExceeded as stopped:
            return stopped.result
    with pytest.raises(ERRORS[error]) as caught:
        run(argv, **kwargs)
    # That of a run is a RunError besides, of the same name.
    assert type(caught.value).__name__ == ERRORS[error].__name__
    return caught.value.result


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_run(case, child, results):
    results[case["name"]] = "failed"
    check(case, child)
    results[case["name"]] = "passed"


@pytest.fixture(scope="module")
def aio_results():
    """How each case went on an event loop."""
    yield from written("aio.json")


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_aio(case, loop, child, aio_results):
    anyio = pytest.importorskip("anyio")
    pytest.importorskip(loop)
    from procwright import aio

    options = {"backend": "trio" if loop == "trio" else "asyncio"}
    if loop == "uvloop":
        options["backend_options"] = {"use_uvloop": True}

    def run(argv, **given):
        return anyio.run(lambda: aio.run(argv, **given), **options)

    if loop == "asyncio":
        aio_results[case["name"]] = "failed"
    check(case, child, run)
    if loop == "asyncio":
        aio_results[case["name"]] = "passed"


def is_for_a_child(case):
    """Whether a child that is held takes the options, and what is expected is not that a limit
    leaves bytes out: it has what was read."""
    given = case.get("options", {})
    keeps_ends = "limit" in given and given.get("beyond") != "fail"
    leaves_out = "limit" in given and "stdout_bytes" in case["expect"]
    is_silence = given.get("until", "").startswith("silent:")
    others = {"check", "merged"} & given.keys()
    return not (keeps_ends or leaves_out or is_silence or others)


@pytest.mark.parametrize("case", list(filter(is_for_a_child, CASES)), ids=lambda case: case["name"])
def test_spawn(case, child):
    check(case, child, lambda argv, **options: procwright.spawn(argv, **options).result())


def check(case, child, run=procwright.run):
    argv = [bytes.fromhex(word["hex"]) if isinstance(word, dict) else word for word in case["argv"]]
    argv = [child if word == "$CHILD" else word for word in argv]
    kwargs = options(case.get("options", {}))
    if "shell" in kwargs:
        (argv,) = argv
    if "stdin_hex" in case:
        kwargs["input"] = bytes.fromhex(case["stdin_hex"])
    if "stdin_zeros" in case:
        kwargs["input"] = bytes(case["stdin_zeros"])
    expected = dict(case["expect"])
    if expected.get("error") == "invalid":
        with pytest.raises(procwright.InvalidValue):
            run(argv, **kwargs)
        return
    if expected.get("error") == "spawn":
        with pytest.raises(procwright.SpawnError) as caught:
            run(argv, **kwargs)
        assert (caught.value.step, caught.value.errno) == (expected["step"], expected["errno"])
        return
    result = outcome(argv, kwargs, expected, run)
    assert {name: fact(name, result) for name in expected} == expected, result
    if result.reason == "finished" and result.stdout_info:
        # A run that was not stopped has left them.
        for holder in result.stdout_info.held_by:
            os.kill(holder.pid, signal.SIGKILL)


@pytest.mark.parametrize("case", MAPS, ids=lambda case: case["name"])
def test_map(case, child, map_results, tmp_path):
    map_results[case["name"]] = "failed"
    check_map(case, child, tmp_path / "journal")
    map_results[case["name"]] = "passed"


def check_map(case, child, journal):
    expected = case["expect"]
    if expected.get("error") == "invalid":
        with pytest.raises(procwright.InvalidValue):
            run_all(case, case["items"], child, None)
        return
    again = case.get("again")
    done = run_all(case, case["items"], child, again and journal)
    if again:
        if again.get("without_ends"):
            forget_ends(journal)
        assert again.keys() <= {"items", "without_ends", "rerun_failed", "rerun_unknown"}
        rerun = {name: True for name in again if name.startswith("rerun_")}
        resumed = procwright.Journal(journal, resume=True, **rerun)
        done = run_all(case, again["items"], child, resumed)
    assert {name: map_fact(name, wanted, *done) for name, wanted in expected.items()} == expected


def run_all(case, items, child, journal):
    """What came of each, and of all."""
    words = [child if word == "$CHILD" else word for word in case["argv"]]
    options = case.get("options", {})
    assert options.keys() <= MAP_OPTIONS
    commands = [[*words, item] for item in items]
    running = procwright.map(commands, ordered=True, journal=journal, text=True, **options)
    return list(running), running.progress


def forget_ends(journal):
    """Takes the ends out, as if the writer had been killed before each of them."""
    lines = journal.read_text().splitlines(keepends=True)
    kept = [line for line in lines if '"event":"ended"' not in line]
    assert kept != lines
    journal.write_text("".join(kept))


def map_fact(name, wanted, ended, progress):
    if name == "commands":
        return progress.taken
    if name in COUNTS or name == "stopped_by":
        return getattr(progress, name)
    if name == "stdout":
        return "".join(one.result.stdout for one in ended if one.result is not None)
    if name == "statuses_before":
        return {str(one.index): map_status(one) for one in ended if one.before is not None}
    assert name == "failures", name
    failed = {str(one.index): one.summary for one in ended if not one.ok}
    return {
        place: wanted.get(place, line) if (wanted.get(place) or "") in line else line
        for place, line in failed.items()
    }


def map_status(ended):
    code = ended.returncode
    assert ended.before.returncode == code
    if code is None:
        return None
    return {"exited": code} if code >= 0 else {"signaled": -code}


@pytest.mark.parametrize("case", PIPELINES, ids=lambda case: case["name"])
def test_pipeline(case, child, pipeline_results):
    pipeline_results[case["name"]] = "failed"
    check_pipeline(case, child, procwright.pipeline)
    if not keeps_ends(case) and not ends_in_a_fan(case):
        check_pipeline(case, child, held)
    pipeline_results[case["name"]] = "passed"


def keeps_ends(case):
    """Whether a limit says how much is kept, which is for what is captured alone."""
    given = case.get("options", {})
    return "limit" in given and given.get("beyond") != "fail"


def ends_in_a_fan(case):
    """Whether several are captured, of which one that is held has one."""
    return any("fan" in stage for stage in case["stages"] if isinstance(stage, dict))


def held(*stages, check=False, **kwargs):
    """What comes of a pipeline that a caller holds."""
    with procwright.spawn_pipeline(*stages, **kwargs) as child:
        result = child.result()
    if check:
        result.check_returncode()
    return result


class Failed(Exception):
    pass


def first_line(file):
    yield file.readline()


def fail(file):
    yield from first_line(file)
    raise Failed("on purpose")


FUNCTIONS = {
    "copy": lambda file: iter(lambda: file.read1(65536), b""),
    "upcase": lambda file: (line.upper() for line in file),
    "first_line": first_line,
    "fail": fail,
}


def pipeline_stage(stage, child):
    """A stage: its words, or its words and options of its own; a function."""
    if "function" in stage:
        return FUNCTIONS[stage["function"]]
    if isinstance(stage, list):
        return [child if word == "$CHILD" else word for word in stage]
    own = dict(stage)
    if "fan" in own:
        return procwright.Fan(*(pipeline_stage(program, child) for program in own["fan"]))
    args = pipeline_stage(own.pop("argv"), child)
    return {
        "args": args,
        **{name: SINKS[value] if name == "stderr" else value for name, value in own.items()},
    }


def check_pipeline(case, child, call):
    given = dict(case.get("options", {}))
    ok_codes = {int(stage): codes for stage, codes in given.pop("ok_codes", {}).items()}
    rule = {name: given.pop(name) for name in {"success"} & given.keys()}
    elastic = dict.fromkeys(given.pop("elastic", ()), True)
    kwargs = {**options(given), **rule, "ok_codes": ok_codes, "elastic": elastic}
    if "stdin_hex" in case:
        kwargs["input"] = bytes.fromhex(case["stdin_hex"])
    if "stdin_zeros" in case:
        kwargs["input"] = bytes(case["stdin_zeros"])
    stages = [pipeline_stage(stage, child) for stage in case["stages"]]
    expected = dict(case["expect"])
    error = expected.pop("error", None)
    if error == "invalid":
        with pytest.raises(procwright.InvalidValue):
            call(*stages, **kwargs)
        return
    if error == "spawn":
        with pytest.raises(procwright.SpawnError) as refused:
            call(*stages, **kwargs)
        assert (refused.value.step, refused.value.errno) == (expected["step"], expected["errno"])
        if "stage" in expected:
            assert f"stage {expected['stage'] + 1} of " in str(refused.value)
        return
    if error == "function":
        with pytest.raises(Failed) as failed:
            call(*stages, **kwargs)
        assert expected["says"] == [str(failed.value)]
        return
    if error is None:
        try:
            result = call(*stages, **kwargs)
        except procwright.OutputLimitExceeded as stopped:
            result = stopped.result
    else:
        with pytest.raises(ERRORS[error]) as caught:
            call(*stages, **kwargs)
        result = caught.value.result
        for words in expected.pop("says", []):
            assert words in str(caught.value)
    assert {name: pipeline_fact(name, result) for name in expected} == expected, result
    if result.reason == "finished" and result.stdout_info:
        # A pipeline that was not stopped has left them.
        for holder in result.stdout_info.held_by:
            os.kill(holder.pid, signal.SIGKILL)


def pipeline_fact(name, result):
    stages = result.stages
    return {
        "success": lambda: result.ok,
        "rule": lambda: result.rule,
        "reason": lambda: result.reason,
        "outcome": lambda: result.outcome,
        "judgements": lambda: [stage.judgement for stage in stages],
        "reasons": lambda: [stage.reason for stage in stages],
        "statuses": lambda: [fact("status", stage) for stage in stages],
        "stdout": lambda: result.stdout.decode(),
        "stdout_hex": lambda: result.stdout.hex(),
        "stdout_bytes": lambda: len(result.stdout),
        "stdouts": lambda: [stage.stdout.decode() for stage in stages if stage.fan],
        "fanned_out": lambda: [stage.fan and stage.fan.bytes_out for stage in stages],
        "stderrs": lambda: [
            None if stage.stderr is None else stage.stderr.decode() for stage in stages
        ],
        "passed_on": lambda: [stage.elastic and stage.elastic.bytes_out for stage in stages],
        "functions": lambda: [
            stage.function and [stage.function.end, stage.function.judgement] for stage in stages
        ],
        "held": lambda: bool(result.stdout_info.held_by),
        "survivors": lambda: sum(len(stage.survivors) for stage in stages),
    }[name]()
