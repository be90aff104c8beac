"""The cases that every front end must pass, read from conformance/run.json."""

import json
import pathlib

import pytest

import procwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = json.loads((ROOT / "conformance" / "run.json").read_text())["cases"]
SAME = ("timeout", "idle_timeout", "until", "env", "cwd")


def options(given):
    kwargs = {name: given[name] for name in SAME if name in given}
    if "grace" in given:
        kwargs["stop"] = procwright.Stop(grace=given["grace"])
    if "limit" in given:
        beyond = {"head_and_tail": "ends", "fail": "fail"}[given["beyond"]]
        kwargs["limit"] = procwright.Limit(given["limit"], beyond)
    if "stderr" in given:
        kinds = {"merged": procwright.STDOUT, "null": procwright.DEVNULL}
        kwargs["stderr"] = kinds[given["stderr"]]
    if "pty" in given:
        kwargs["pty"] = tuple(given["pty"])
    unknown = set(given) - {*SAME, "pty", "grace", "limit", "beyond", "stderr"}
    assert not unknown, unknown
    return kwargs


def fact(name, result):
    info = result.stdout_info
    return {
        "status": lambda: {
            "exited": {"exited": result.status.code},
            "signaled": {"signaled": result.status.signal},
        }[result.status.kind],
        "reason": lambda: result.reason,
        "stdout": lambda: result.stdout.decode(),
        "stderr": lambda: result.stderr.decode(),
        "stdout_hex": lambda: result.stdout.hex(),
        "stdout_bytes": lambda: len(result.stdout),
        "stderr_bytes": lambda: len(result.stderr),
        "stderr_info": lambda: result.stderr_info and "some",
        "stdout_dropped": lambda: info.dropped_bytes,
        "complete": lambda: info.complete,
        "held": lambda: bool(info.held_by),
        "survivors": lambda: len(result.survivors),
    }[name]()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_run(case, child):
    argv = [child if word == "$CHILD" else word for word in case["argv"]]
    kwargs = options(case.get("options", {}))
    if "stdin_hex" in case:
        kwargs["input"] = bytes.fromhex(case["stdin_hex"])
    if "stdin_zeros" in case:
        kwargs["input"] = bytes(case["stdin_zeros"])
    expected = dict(case["expect"])
    error = expected.pop("error", None)
    if error == "invalid":
        with pytest.raises(procwright.InvalidValue):
            procwright.run(argv, **kwargs)
        return
    if error == "spawn":
        with pytest.raises(procwright.SpawnError) as caught:
            procwright.run(argv, **kwargs)
        assert (caught.value.step, caught.value.errno) == (expected["step"], expected["errno"])
        return
    try:
        result = procwright.run(argv, on_timeout="return", **kwargs)
    except procwright.OutputLimitExceeded as stopped:
        result = stopped.result
    assert {name: fact(name, result) for name in expected} == expected, result
