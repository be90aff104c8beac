"""`Cassette`: runs that were recorded, and are replayed."""

from __future__ import annotations

import hashlib
import json
import os
import time

from ._arguments import callback, file_name, items, word
from ._errors import SpawnError, _spawn_error
from ._fake import Player
from ._fake_calls import Call, NotRegistered
from ._fake_pipeline import replayed
from ._fake_reply import Err, Out, Reply, _data_of, _of_dict
from ._fake_run import take_input
from ._fan import row
from ._hinted import hinted
from ._invalid import InvalidValue, bad_value
from ._outcome import result_of
from ._pipeline import result_of as of_pipeline
from ._result import _json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Literal, TypeVar

    from ._types import StrOrBytesPath

    _T = TypeVar("_T")

_MODES = ("once", "replay", "record", "add")
_MATCH = ("argv", "input", "cwd", "env")
#: The first line of a file.
_HEAD = {"procwright": "cassette", "version": 1}


class _Recorded:
    """A line of the file."""

    def __init__(self, line: dict[str, Any]) -> None:
        self.line = line
        self.is_used = False


@hinted
class Cassette(Player):
    """Records what programs do, and replays it in their place.

    Of a `run`, and of the commands of a `map`, all that the result tells is recorded, and when
    each piece of output came; of a `pipeline` all that its result tells. Each recording is
    replayed once, in the order in which those that match were made. What is not recorded is
    refused with `NotRegistered`, as by a `Fake`.

    path
        The file: lines of JSON, one for each call, with the result as `Result.to_json()` has it.
    mode
        "once" records if there is no such file, and else replays; "replay" never records;
        "record" records anew; "add" replays what is recorded, and records the rest.
    match
        What has to be the same: "argv", "input" (what came on stdin, as far as that is known),
        "cwd", "env".
    before_save
        Called with each line, a dictionary, before it is written: it returns it, changed where
        it tells what nobody should read, or None to leave it out.

    What is recorded is written at the end of the block, if that is left without an exception.
    """

    def __init__(
        self,
        path: StrOrBytesPath,
        mode: Literal["once", "replay", "record", "add"] = "once",
        *,
        match: Iterable[Literal["argv", "input", "cwd", "env"]] = ("argv", "input"),
        before_save: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None,
    ) -> None:
        super().__init__()
        #: The file.
        self.path = os.fsdecode(file_name("path", path, "pass a file, a str, bytes or a path"))
        #: What is done with it.
        self.mode = word("mode", mode, _MODES)
        hint = 'pass a list of "argv", "input", "cwd" and "env"'
        self._match = tuple(
            word(f"match[{place}]", one, _MATCH)
            for place, one in enumerate(items("match", match, hint))
        )
        callback("before_save", before_save)
        self._before_save = before_save
        exists = os.path.exists(self.path)
        if mode == "replay" and not exists:
            raise FileNotFoundError(
                2, "no such cassette: record it with mode='once', or pass another", self.path
            )
        #: Whether calls that are not recorded are run, and recorded.
        self.is_recording = mode in ("record", "add") or (mode == "once" and not exists)
        self._recorded: list[_Recorded] = []
        self._new: list[dict[str, Any]] = []
        if exists and mode != "record":
            self._recorded = [_Recorded(line) for line in _read(self.path)]

    @property
    def unused(self) -> int:
        """How many recordings have not been replayed."""
        with self._lock:
            return sum(not one.is_used for one in self._recorded)

    def _one(
        self, call: Call, native: Callable[[dict[str, Any]], Any], given: Mapping[str, Any]
    ) -> Any:
        if call.function == "spawn":
            raise InvalidValue(
                f"{call} is a child, and a cassette has what ends by itself alone: use run(), or a "
                "Fake with a Reply of the steps"
            )
        take_input(call)
        asked = self._asked(call)
        line = self._taken([call], asked)
        if line is not None:
            # Outside of the lock: a callback, on a thread of its own, may run programs itself.
            return self._plays(call, native, _answer(line))
        self._refuse_unless_recording(str(call), asked)
        return self._record(call, native, given, asked)

    def _pipeline(
        self,
        calls: list[Call],
        native: Callable[[dict[str, Any]], Any],
        options: dict[str, Any],
    ) -> Any:
        first = calls[0]
        for call in calls[: row(options["fans"], len(calls))[0].stop]:
            take_input(call)
        asked = self._asked_of_all(calls, options)
        line = self._taken(calls, asked)
        if line is not None:
            if "error" in line:
                raise _error(line)
            return replayed(calls, options, line["pipeline"], line["texts"])
        self._refuse_unless_recording(" | ".join(map(str, calls)), asked)
        if first._options["stdin"][0] == "iterator":
            # It has been read, to be compared.
            stages = [{**options["stages"][0], "stdin": ("bytes", first.input)}]
            options = {**options, "stages": [*stages, *options["stages"][1:]]}
        line = {"asked": asked}
        raw = self._told(calls, line, lambda: native(options))
        if raw["error"] is None and raw["io_error"] is None:
            result = of_pipeline([call.args for call in calls], raw, None)
            line["pipeline"] = result.to_dict()
            texts = [[one.summary, one.explanation] for one in result.stages]
            line["texts"] = [*texts, [result.summary, result.explanation]]
            self._keep(calls, line)
        return raw

    def _told(self, calls: list[Call], line: dict[str, Any], start: Callable[[], _T]) -> _T:
        """What `start` gives. That it could not is kept in the line."""
        try:
            return start()
        except SpawnError as error:
            line["error"] = {
                "errno": error.errno,
                "reason": error.strerror,
                "filename": error.filename,
                "step": error.step,
                "text": str(error),
            }
            self._keep(calls, line)
            raise

    def _refuse_unless_recording(self, what: str, asked: dict[str, Any]) -> None:
        if not self.is_recording:
            error = NotRegistered(self._refusal(what, asked))
            with self._lock:
                self._refused.append(error)
            raise error

    def _taken(self, calls: list[Call], asked: dict[str, Any]) -> dict[str, Any] | None:
        """The line that answers the calls, which then is used; None if there is none."""
        with self._lock:
            for one in self._recorded:
                if not one.is_used and one.line["asked"] == asked:
                    one.is_used = True
                    self._calls += calls
                    return one.line
        return None

    def _checked(self, options: dict[str, Any]) -> dict[str, Any]:
        # A recording is replayed where nobody knows these names; a real run looks itself.
        return {**options, "user": None, "group": None, "extra_groups": None}

    def _asked(self, call: Call) -> dict[str, Any]:
        """What is compared, as JSON has it."""
        found: dict[str, Any] = {}
        if "argv" in self._match:
            found["argv"] = [_json(os.fsencode(one)) for one in call.argv]
        if "input" in self._match:
            data = call.input
            found["input_sha256"] = None if data is None else hashlib.sha256(data).hexdigest()
        if "cwd" in self._match:
            found["cwd"] = None if call.cwd is None else os.fsdecode(call.cwd)
        if "env" in self._match:
            found["env"] = dict(sorted(call.env.items()))
        return found

    def _asked_of_all(self, calls: list[Call], options: dict[str, Any]) -> dict[str, Any]:
        """What is compared of a pipeline: stages, fans and functions, what comes in, the rule."""
        stages = [self._asked(call) for call in calls]
        read = [stage.pop("input_sha256", None) for stage in stages]
        found: dict[str, Any] = {"stages": stages, "success": options["success"]}
        found["ok_codes"] = [[stage, list(codes)] for stage, codes in options["ok_codes"]]
        if fans := [[before, count] for before, count in options["fans"] if count > 1]:
            # How many are before it, and how many it has.
            found["fans"] = fans
        if functions := [[behind, one.__name__] for behind, one in options["functions"]]:
            # The stage that each is behind.
            found["functions"] = functions
        if "input" in self._match:
            first = row(options["fans"], len(calls))[0]
            found["input_sha256"] = read[0] if len(first) == 1 else read[: first.stop]
        return found

    def _record(
        self,
        call: Call,
        native: Callable[[dict[str, Any]], Any],
        given: Mapping[str, Any],
        asked: dict[str, Any],
    ) -> Any:
        pieces: list[tuple[float, int, bytes]] = []
        begun = time.monotonic()

        def tap(stream: int) -> tuple[int, bool, Callable[[bytes | None], None]]:
            def take(data: bytes | None) -> None:
                if data:
                    pieces.append((time.monotonic() - begun, stream, data))

            return stream, False, take

        options = call._options
        captured = [
            stream
            for stream, name in ((1, "stdout"), (2, "stderr"))
            if options[name][0] == "capture" and not (stream == 2 and options["pty"])
        ]
        call._options = {**options, "taps": [*options["taps"], *map(tap, captured)]}
        if options["stdin"][0] == "iterator":
            # It has been read, to be compared.
            call._options["stdin"] = ("bytes", call.input)
        line: dict[str, Any] = {"asked": asked}
        raw = self._told([call], line, lambda: self._really(call, native, given))
        if raw["error"] is None and raw["io_error"] is None:
            result = result_of(call.args, raw, None)
            line["result"] = result.to_dict()
            line["summary"] = result.summary
            line["explanation"] = result.explanation
            line["pieces"] = [
                {
                    "after_s": round(after, 6),
                    "stream": "stdout" if stream == 1 else "stderr",
                    "data": _json(data),
                }
                for after, stream, data in pieces
            ]
            self._keep([call], line)
        return raw

    def _keep(self, calls: list[Call], line: dict[str, Any]) -> None:
        with self._lock:
            self._calls += calls
            self._new.append(line)

    def _refusal(self, what: str, asked: dict[str, Any]) -> str:
        lines = [f"{what} is not recorded in {self.path}, and was not started"]
        with self._lock:
            for one in self._recorded:
                was = one.line["asked"]
                state = "replayed" if one.is_used else "not asked for yet"
                lines.append(f"  {_words(was)}  ({state})")
                for name in asked:
                    if _programs(was) == _programs(asked) and was.get(name) != asked[name]:
                        lines.append(f"    its {name} is another")
        lines.append("to record it: mode='add', or mode='record' for all anew")
        return "\n".join(lines)

    def _leave(self, error: BaseException | None) -> None:
        super()._leave(error)
        if error is None and self._new:
            self._save()

    def _save(self) -> None:
        new = []
        for line in self._new:
            changed = line if self._before_save is None else self._before_save(line)
            if changed is not None:
                new.append(changed)
        lines = [_HEAD, *[one.line for one in self._recorded], *new]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        # Whole or not at all, for whoever reads it meanwhile.
        beside = f"{self.path}.{os.getpid()}.new"
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(beside, self.path)


def _words(asked: dict[str, Any]) -> str:
    argvs = _programs(asked)
    shown = [repr([os.fsdecode(_data_of(one)) for one in argv]) for argv in argvs if argv]
    return " | ".join(shown) or repr(asked)


def _programs(asked: dict[str, Any]) -> list[Any]:
    """The arguments of a program, or of each stage."""
    return [one.get("argv") for one in asked.get("stages", [asked])]


def _read(path: str) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    try:
        head, *rest = [json.loads(line) for line in lines]
        if head != _HEAD or not all("asked" in line for line in rest):
            raise ValueError("it is none of version 1")
        for line in rest:
            _check(line)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = f"it is no cassette ({error}): record it anew, with mode='record'"
        raise bad_value("path", path, hint) from None
    return rest


def _error(line: dict[str, Any]) -> SpawnError:
    one = line["error"]
    return _spawn_error(one["errno"], one["reason"], one["filename"], one["step"], one["text"])


def _check(line: dict[str, Any]) -> None:
    """Raises, as what is missing does, unless the line can be played."""
    if "pipeline" not in line:
        _answer(line)
        return
    for parts, (summary, explanation) in zip(
        line["pipeline"]["stages"], line["texts"][:-1], strict=True
    ):
        _of_dict(parts, explanation, summary)
        _ = parts["judgement"]


def _answer(line: dict[str, Any]) -> Reply | SpawnError:
    """What plays a line again."""
    if "error" in line:
        return _error(line)
    reply = _of_dict(line["result"], line["explanation"], line["summary"])
    if line["result"]["merged"] is None and _is_whole(line["result"]):
        # The order in which the pieces came.
        kinds: dict[str, type[Out | Err]] = {"stdout": Out, "stderr": Err}
        reply.steps = tuple(kinds[one["stream"]](_data_of(one["data"])) for one in line["pieces"])
    return reply


def _is_whole(result: dict[str, Any]) -> bool:
    """Whether no limit has dropped a part of the output."""
    infos = [result[f"{name}_info"] for name in ("stdout", "stderr")]
    return not any(info and (info["dropped_bytes"] or info["undelivered_bytes"]) for info in infos)
