"""`pipeline()`: programs that are joined by pipes."""

from __future__ import annotations

from . import _core, _starting
from ._arguments import callback, flag, items, number, pairs, word
from ._fan import Fan, spread
from ._generic import Each, Err, Generic, Out
from ._hinted import hinted
from ._invalid import InvalidValue, bad_type, bad_value, shown
from ._late_calls import given_to, is_late, of_many
from ._options import COMMON, argv, event_hook, given_args, translated
from ._outcome import raise_for
from ._result import AskOk, NoText, Result, as_json, no_truth
from ._run import run
from ._stage_function import StageFunction, runner, split
from ._stdio import CAPTURE, captures, data_source, source, text_decoding
from ._stream import Figures
from ._timeout import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Literal, NoReturn, TypeVar

    from typing_extensions import Unpack

    from ._core import RawPipeline, RawStage
    from ._event import Event
    from ._keywords import Program
    from ._late import LateCommand, LatePipeline
    from ._overflow import Overflow
    from ._record import Survivor
    from ._types import Args, Data, MaybeNone, Seconds, Sink, StageFn, Stdin

    _T = TypeVar("_T")

#: What `run` does when it is not told otherwise.
_DEFAULTS: dict[str, Any] = dict(run.__kwdefaults__ or {})
#: Options of `run` that a stage has not: what joins it to others, and what needs code.
_NOT_OF_A_STAGE = (
    "input",
    "stdin",
    "stdout",
    "pty",
    "merged",
    "keep_full",
    "tee",
    "on_line",
    "on_stdout_line",
    "on_stderr_line",
    "max_length",
    "too_long",
    "text",
    "encoding",
    "errors",
    "check",
    "on_timeout",
    "cancel",
    "on_event",
    "input_wanted",
    "explain_after",
)
#: Those that the whole has, and the options of a stage have not or have defaults for.
_OF_WHOLE = (
    "timeout",
    "idle_timeout",
    "success",
    "elastic",
    "text",
    "encoding",
    "errors",
    "check",
    "on_timeout",
)
#: Those that each stage has.
OF_EACH_STAGE = frozenset(_DEFAULTS).difference(_NOT_OF_A_STAGE)
_STAGES = "pass each stage as a list of arguments, or as a mapping of args and options"


def pipeline(
    *stages: Args | Mapping[str, Any] | StageFn | Fan | LateCommand[Any] | LatePipeline,
    input: Data | str | None = None,
    stdin: Stdin = None,
    stdout: Sink = CAPTURE,
    stderr: Sink = CAPTURE,
    limit: int | str | _core.Limit | None = None,
    timeout: Seconds | None = None,
    idle_timeout: Seconds | None = None,
    success: Literal["forgiving", "strict", "last"] = "forgiving",
    ok_codes: Mapping[int, Iterable[int]] | None = None,
    elastic: bool | Overflow | Mapping[int, bool | Overflow] = False,
    text: bool = False,
    encoding: str | None = None,
    errors: str | None = None,
    check: bool = False,
    on_timeout: Literal["raise", "return"] = "raise",
    cancel: _core.Cancel | None = None,
    on_event: Callable[[Event], object] | None = None,
    **options: Unpack[Program],
) -> PipelineResult[Any]:
    """Runs programs of which each writes into the next one, and judges each.

    The pipes between are the kernel's: nothing passes through this process. All are started, or
    none; all have one deadline; and when one has to be stopped, all are.

    stages
        What to run: each a list of arguments as `run` takes it, or a mapping with `args` and
        options of `run` for this stage alone, which come on top of `options`; or a `Command`. That
        of the first may have `input` or `stdin`, that of the last `stdout`. Between two programs
        may be a function, which is called on a thread of its own with what the first
        writes, as a file to read, and gives what the second reads: pieces that it yields, or a
        list of them. Its exception stops all and comes through. Stages are counted without it.
        A stage may be a `Fan` of programs, each of which gets all that the one before writes, and
        whose lines the next one gets. Each of its programs is counted as a stage.
    input, stdin
        What the first reads, as of `run`.
    stdout
        Where the last writes, as of `run`. The others of a `Fan` are captured, unless they say
        `stdout` themselves: `result.stages[1].stdout`.
    stderr
        Where each writes its errors, as of `run`; `STDOUT` sends both into the pipe.
    limit
        How much is kept of stdout, and of each stderr, as of `run`.
    timeout, idle_timeout
        Stop all after this time, or after so long without a byte on stdout of the last or on
        stderr of any. What passes between two stages is not seen.
    success
        The rule: "forgiving" wants 0 of each, but for one that could write no more since the
        next had read enough and ended well; "strict" forgives none, as `pipefail`; "last" asks
        for the last alone.
    ok_codes
        Exit codes that are no failure, by stage, from 0: `{1: [1]}` for a grep that may find
        nothing. A stage may say its own, `{"args": [...], "ok_codes": [1]}`.
    elastic
        A buffer behind each stage but the last, so that each ends at its own speed: what the
        next one has not taken yet is kept in memory, then on disk. `True`, an `Overflow` that
        says how much, or a mapping of stages, from 0: `{0: True}`. What is buffered passes
        through this process, by two threads for each buffer.
    text, encoding, errors, check, on_timeout, cancel, on_event
        As of `run`; `check` is about the rule.
    options
        Options of `run` for each stage: `env`, `cwd`, `rlimits` and the like. `stop` says how
        all are stopped.

    Raises `InvalidValue`, and what `run` raises, with the `PipelineResult` as `result`.
    """
    given = locals()
    if any(map(is_late, stages)):
        stages, of_all = of_many(stages, given_to(pipeline, given))
        return pipeline(*stages, **of_all)
    plan = Plan(pipeline, given)
    answer = plan.start(_core.pipeline)
    if answer["error"] is not None:
        raise answer["error"]
    result = result_of(plan.args, answer, plan.decoding)
    if answer["io_error"] is not None or not result.ok:
        raise_for(result, answer["io_error"], check, on_timeout, timeout, idle_timeout)
    return result


class Plan:
    """What a call of `pipeline` or `spawn_pipeline` has been given, for the core: refused is what
    can be known to be wrong before anything is started."""

    __slots__ = ("_given_to", "_of_whole", "_options", "args", "decoding")

    def __init__(self, function: Callable[..., Any], given: Mapping[str, Any]) -> None:
        """`given` has the parameters of `function`, under their names."""
        stages, options = given["stages"], given["options"]
        cancel, on_event = given["cancel"], given["on_event"]
        _refuse_one_list(function, stages)
        stages, fans = spread(stages)
        stages, functions = split(stages)
        # How many stand side by side at the start, and at the end: 0 without a Fan.
        first = fans[0][1] if fans and fans[0][0] == 0 else 0
        fan = fans[-1][1] if fans and 0 < fans[-1][0] == len(stages) - fans[-1][1] else 0
        #: The place of the first that nobody reads.
        last = len(stages) - max(fan, 1)
        stages, given = _ends_of_whole(function, stages, given, first == 0, fan == 0)
        #: Encoding and error handler, None for bytes.
        self.decoding = text_decoding(given["text"], given["encoding"], given["errors"])
        word("on_timeout", given["on_timeout"], ("raise", "return"))
        if "check" in given:
            hint = "; which codes of a stage are no failure is said by ok_codes={0: [1]}"
            flag("check", given["check"], hint)
        _refuse_two_ends(function, given, stages, first, fan)
        word("success", given["success"], ("forgiving", "strict", "last"))
        if on_event is not None:
            callback("on_event", on_event)
        if given["input"] is not None and given["stdin"] is not None:
            raise InvalidValue("stdin and input are both given: input is what the first reads")
        if _starting.answer is not None and function is not pipeline:
            raise InvalidValue(
                f"{function.__name__}: a Fake and a Cassette play pipeline() alone, which is not "
                "talked to"
            )
        besides = ("stderr", "limit", "timeout", "idle_timeout", "args")
        _refuse(function, "options", options, besides)
        of_all = {
            **_DEFAULTS,
            **options,
            "stderr": given["stderr"],
            "limit": given["limit"],
            "cancel": cancel,
            "on_event": on_event,
        }
        of_all["stop"] = None
        #: The arguments of each stage.
        self.args: list[Any] = []
        #: The options of each.
        self._given_to: list[dict[str, Any]] = []
        #: What is said once, for all of them.
        self._of_whole = {name: given[name] for name in _OF_WHOLE if name in given}
        self._of_whole["stop"] = options.get("stop")
        raw = []
        for place, stage in enumerate(stages):
            is_of_fan = fan > 0 and place >= last
            own_ends = ["stdout"] if is_of_fan else ["stdin"] if place < first else []
            args, own = _stage(function, place, stage, of_all, own_ends)
            _refuse_line(function, stages, place, args, own["shell"])
            says_stdout = is_of_fan and hasattr(stage, "keys") and "stdout" in stage
            if place == len(stages) - 1 and not says_stdout:
                own["stdout"] = given["stdout"]
            self.args.append(args)
            one = {
                "argv": argv(function.__name__, args, own["shell"]),
                **translated(COMMON, own),
                "tee": [],
                "taps": [],
                "stdin": ("null", None),
            }
            self._given_to.append(own)
            if place < first and hasattr(stage, "keys") and "stdin" in stage:
                kind, what = source(own["stdin"], self.decoding)
                one["stdin"] = kind, what
                if kind == "iterator":
                    hint = "of a Fan each reads a file or nothing: put a ['cat'] with that alone"
                    raise bad_type(f"stages[{place}]['stdin']", own["stdin"], hint)
            elif place == 0 and first <= 1:
                own.update(stdin=given["stdin"], input=given["input"])
                one["stdin"] = self._source(given)
            if "overflow" in given:
                # What the core refuses of a child is told of with it.
                own["overflow"] = given["overflow"]
            _starting.audit("pipeline", one, own)
            raw.append(one)
        self._options: dict[str, Any] = {
            "stages": raw,
            "timeout": seconds(given["timeout"], "timeout"),
            "idle_timeout": seconds(given["idle_timeout"], "idle_timeout"),
            "stop": COMMON["stop"](options.get("stop")),
            "cancel": COMMON["cancel"](cancel),
            "success": given["success"],
            "ok_codes": _ok_codes(given["ok_codes"], len(stages)),
            "elastic": _elastic(
                given["elastic"], last + 1, [behind for behind, _ in functions], fans
            ),
            "fans": fans,
            "functions": [(behind, runner(one, self.decoding)) for behind, one in functions],
            "on_event": event_hook(on_event),
        }

    def _source(self, given: Mapping[str, Any]) -> tuple[str, object]:
        """What the first stage reads."""
        input, stdin = given["input"], given["stdin"]
        if input is not None:
            return data_source(input, self.decoding)
        if "overflow" in given and captures(stdin):
            # The caller writes it.
            return "pipe", None
        return source(stdin, self.decoding)

    def start(self, native: Callable[[dict[str, Any]], _T], **besides: object) -> _T:
        """Calls the core, with options besides those of all pipelines. What it refuses of a stage
        is told of in Python's words."""
        options = {**self._options, **besides}
        answering = _starting.answer
        try:
            if answering is None:
                return native(options)
            given = zip(self.args, self._given_to, strict=True)
            stages = [{**own, **self._of_whole, "args": args} for args, own in given]
            answered: _T = answering("pipeline", native, options, {"stages": stages})
            return answered
        except InvalidValue as error:
            place: int | None = getattr(error, "_stage", None)
            if place is None:
                raise
            from ._refused import words

            text = words(error, self._given_to[place])
            # There is one stdin and one stdout.
            of_whole = error._option in ("stdin", "stdout")
            error.args = (text if of_whole else f"stage {place + 1}: {text}",)
            raise


def result_of(
    args: list[Any], raw: RawPipeline, decoding: tuple[str, str] | None
) -> PipelineResult[Any]:
    """The result of a pipeline whose stages were given `args`."""
    return PipelineResult(args, raw, decoding, _failure)


def _ends_of_whole(
    function: Callable[..., Any],
    stages: tuple[Any, ...],
    given: Mapping[str, Any],
    is_first_alone: bool,
    is_last_alone: bool,
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """What the first stage says of its input and the last of its stdout is what the whole could
    have said: the stages without it, and the parameters with it."""
    flat = list(stages)
    of_whole: dict[str, Any] = function.__kwdefaults__ or {}
    ends = [(0, "input"), (0, "stdin")] if is_first_alone else []
    ends += [(-1, "stdout")] if is_last_alone else []
    for place, name in ends:
        if not flat or not hasattr(flat[place], "keys"):
            continue
        own = dict(pairs(f"stages[{place % len(flat)}]", flat[place], _STAGES))
        if name not in own:
            continue
        # The default is not told from its value.
        if given[name] is not of_whole[name]:
            whose = f"the {'first' if place == 0 else 'last'} stage has its own"
            hint = f"{whose}, {shown(own[name])}: leave one of them out"
            raise bad_value(name, given[name], hint)
        given = {**given, name: own.pop(name)}
        flat[place] = own
    return tuple(flat), given


def _refuse_two_ends(
    function: Callable[..., Any],
    given: Mapping[str, Any],
    stages: tuple[Any, ...],
    first: int,
    fan: int,
) -> None:
    """Refuses what would be said twice of one end, by the whole and by a program of a `Fan`."""

    def says(stage: Any, end: str) -> bool:
        return hasattr(stage, "keys") and end in stage

    for name in ("input", "stdin"):
        if given[name] is None:
            continue
        if first > 1:
            raise InvalidValue(
                "input and stdin are for one program: give those of a Fan their own, as "
                "Fan({'args': ..., 'stdin': ...}, ...)"
            )
        if first == 1 and says(stages[0], "stdin"):
            hint = "the first program has a stdin of its own: leave one of them out"
            raise bad_value(name, given[name], hint)
    of_whole: dict[str, Any] = function.__kwdefaults__ or {}
    # The default is not told from its value.
    if given["stdout"] is not of_whole["stdout"] and fan > 0 and says(stages[-1], "stdout"):
        hint = "the last program of the Fan has a stdout of its own: leave one of them out"
        raise bad_value("stdout", given["stdout"], hint)


def _stage(
    function: Callable[..., Any],
    place: int,
    stage: Any,
    of_all: dict[str, Any],
    own_ends: list[str],
) -> tuple[Any, dict[str, Any]]:
    """The arguments of a stage, and its options. One of several that nobody reads may say where it
    writes, and one of several that read nobody what it reads: `own_ends`."""
    if not hasattr(stage, "keys"):
        return given_args(stage, f"stages[{place}]"), dict(of_all)
    name = f"stages[{place}]"
    own = dict(pairs(name, stage, _STAGES))
    if "args" not in own:
        raise bad_value(name, stage, "it has no args, the program and its arguments")
    args = given_args(own.pop("args"), f"{name}['args']")
    ends = {end: own.pop(end) for end in own_ends if end in own}
    _refuse(function, name, own)
    return args, {**of_all, **own, **ends}


def _refuse(
    function: Callable[..., Any],
    name: str,
    options: Mapping[str, Any],
    besides: tuple[str, ...] = (),
) -> None:
    of_whole: dict[str, Any] = function.__kwdefaults__ or {}
    for option, value in options.items():
        if option in OF_EACH_STAGE and option not in besides:
            continue
        if option in of_whole:
            # Of a stage that is one of some.
            raise InvalidValue(
                f"{option} in {name} is not for a stage: it is one of the whole, "
                f"{function.__name__}(..., {option}={shown(value)})"
            )
        from ._unknown import refusal

        known = [*of_whole, *OF_EACH_STAGE]
        raise refusal(function.__name__, {option: value}, known, ())


def _refuse_one_list(function: Callable[..., Any], stages: tuple[Any, ...]) -> None:
    """Refuses all stages in one list, where each is an argument."""
    if len(stages) == 1 and isinstance(stages[0], (list, tuple)):
        (given,) = stages
        if given and all(isinstance(one, (list, tuple)) or hasattr(one, "keys") for one in given):
            hint = f"each stage is an argument: pass {function.__name__}(*stages)"
            raise bad_type("stages[0]", given, hint)


def _refuse_line(
    function: Callable[..., Any], stages: tuple[Any, ...], place: int, args: Any, shell: Any
) -> None:
    """Refuses a program and its arguments in one string, and says what the call would be."""
    if shell or not isinstance(args, (str, bytes)):
        return
    from ._line import as_arguments, programs, words

    name = f"stages[{place}]" if args is stages[place] else f"stages[{place}]['args']"
    shells = "lines for the shell with shell=True"
    if name.endswith("]['args']"):
        raise bad_type(name, args, f"pass a list, {{'args': {words(args)}, ...}}; {shells}")
    lists: list[Any] = []
    for stage in stages:
        found = programs(stage) if isinstance(stage, (str, bytes)) else [stage]
        if found is None:
            hint = f"it needs a shell: run({shown(stage)}, shell=True)"
            if len(stages) > 1:
                hint = f"{shown(stage)} needs a shell, as a stage {shown(['sh', '-c', stage])}"
            raise bad_type(name, args, hint)
        lists += found
    hint = f"pass each stage as a list, {function.__name__}({as_arguments(lists)})"
    raise bad_type(name, args, f"{hint}; {shells}")


def _ok_codes(codes: Any, count: int) -> list[tuple[int, list[int]]]:
    hint = "pass a mapping of stages, from 0, to lists of exit codes, such as {1: [1]}"
    if codes is None:
        return []
    return [
        (
            number("a stage in ok_codes", stage, 0, max(count - 1, 0), hint),
            [
                number(f"ok_codes[{stage!r}]", code, 0, 255, hint)
                for code in items(f"ok_codes[{stage!r}]", all_codes, hint)
            ],
        )
        for stage, all_codes in pairs("ok_codes", codes, hint)
    ]


def _elastic(
    elastic: Any, count: int, functions: list[int], fans: list[tuple[int, int]]
) -> list[tuple[int, tuple[str, int, int | None]]]:
    """The buffers, by the stages that they are behind. Behind those of `functions` is one, and
    behind those of a `Fan` that is read a merge."""
    hint = "pass True, an Overflow, or a mapping of stages, from 0, to these"
    if hasattr(elastic, "keys"):
        # The last has none behind it.
        behind = {
            number("a stage in elastic", stage, 0, count - 2, hint): _buffer(
                f"elastic[{stage}]", policy, hint
            )
            for stage, policy in pairs("elastic", elastic, hint)
        }
    else:
        several = [(before, programs) for before, programs in fans if programs > 1]
        merged = {one for before, programs in several for one in range(before, before + programs)}
        free = [one for one in range(count - 1) if one not in functions and one not in merged]
        behind = dict.fromkeys(free, _buffer("elastic", elastic, hint))
    for stage in functions:
        if behind.get(stage) is not None:
            hint = "leave it out for that stage, which has a function behind it"
            raise bad_value(f"elastic[{stage}]", elastic[stage], hint)
    return [(stage, policy) for stage, policy in behind.items() if policy is not None]


def _buffer(name: str, policy: Any, hint: str) -> tuple[str, int, int | None] | None:
    """The policy of a buffer for the core, None without one."""
    if policy is False:
        return None
    from ._overflow import Overflow

    if policy is True:
        policy = Overflow()
    if not isinstance(policy, Overflow):
        raise bad_type(name, policy, hint)
    return policy._raw()


def _failure(result: Any, text: str) -> Exception:
    from ._run_errors import CalledProcessError

    return CalledProcessError(result, text)


#: The figures of a buffer that say something when it is over.
_FIGURES_AT_THE_END = (
    "bytes_in",
    "bytes_out",
    "lag_bytes",
    "peak_bytes",
    "memory_peak_bytes",
    "disk_peak_bytes",
    "spilled_bytes",
    "dropped_bytes",
    "lost_bytes",
    "blocked_s",
)


def _at_the_end(figures: Figures) -> dict[str, Any]:
    return {name: getattr(figures, name) for name in _FIGURES_AT_THE_END}


@hinted
class Stage(Result[Out, Err, None]):
    """What became of one stage: a `Result`, and its judgement.

    Its `stdout` is None where the next stage has read it, which type checkers leave out: who asks
    for that asks for one of a `Fan`, or the last.
    """

    __slots__ = ("elastic", "fan", "function", "judgement")

    def __init__(self, args: Any, raw: RawStage, decoding: Any, failure: Any) -> None:
        super().__init__(args, raw, decoding, failure)
        #: What its end means for the whole: "success"; "forgiven", it could write no more since
        #: the next stage had read enough; "ignored", it failed and the rule does not ask;
        #: "failed", it is to blame; "collateral", it ended so since another failed or all were
        #: stopped.
        self.judgement = raw["judgement"]
        found = raw["elastic"]
        #: The `Figures` of the elastic buffer behind it, None without one.
        self.elastic = None if found is None else Figures(found)
        passed_on = raw["fan"]
        #: The `Figures` of what was passed on to it as one of a `Fan`, None of others.
        self.fan = None if passed_on is None else Figures(passed_on)
        function = raw["function"]
        #: What became of the function behind it, a `StageFunction`, None without one.
        self.function = None if function is None else StageFunction(*function)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON has it: plain values only."""
        parts = super().to_dict()
        parts["judgement"] = self.judgement
        parts["elastic"] = None if self.elastic is None else _at_the_end(self.elastic)
        if self.fan is not None:
            parts["fan"] = _at_the_end(self.fan)
        if self.function is not None:
            parts["function"] = self.function.to_dict()
        return parts


@hinted
class PipelineResult(NoText, Generic[Out, Each]):
    """All that came of a pipeline.

    `PipelineResult[str]` is one whose `stdout` is `str`, `PipelineResult[None, str]` one
    whose `stdout` went elsewhere, and whose stages had their stderr captured as `str`.
    """

    __slots__ = (
        "_explanation",
        "_failure",
        "args",
        "duration_s",
        "ok",
        "outcome",
        "reason",
        "rule",
        "stages",
        "summary",
    )

    def __init__(
        self,
        args: list[Any],
        raw: RawPipeline,
        decoding: tuple[str, str] | None,
        failure: Callable[[PipelineResult[Any], str], Exception],
    ) -> None:
        #: The arguments of each stage.
        self.args = args
        #: What became of each stage.
        self.stages: list[Stage[Each | MaybeNone]] = [
            Stage(args[place], its, decoding, failure) for place, its in enumerate(raw["stages"])
        ]
        #: True if it ended by itself, and well by its rule.
        self.ok = raw["success"]
        #: The rule: "forgiving", "strict" or "last".
        self.rule = raw["rule"]
        #: Why it is over: "finished", or what all were stopped for.
        self.reason = raw["reason"]
        #: How it came out, in a line without the commands.
        self.outcome = raw["outcome"]
        #: The commands and the outcome, in a line.
        self.summary = raw["summary"]
        #: Seconds from the start to the last end.
        self.duration_s = raw["duration_s"]
        self._explanation = raw["explanation"]
        self._failure = failure

    @property
    def stdout(self) -> Out:
        """What the last stage wrote: `str` if text was asked for, else `bytes`. Of a `Fan` that is
        its last program; each has its own in `stages`."""
        data: Any = self.stages[-1].stdout
        out: Out = data
        return out

    @property
    def stderr(self) -> Each | MaybeNone:
        """What all stages wrote on stderr, one stage after the other, None if nothing was
        captured; of each its own is in `stages`."""
        captured: list[Any] = [one.stderr for one in self.stages if one.stderr_bytes is not None]
        return captured[0][:0].join(captured) if captured else None

    @property
    def stdout_info(self) -> Any:
        """About stdout of the last stage, None where no pipe was put between."""
        return self.stages[-1].stdout_info

    @property
    def stdout_bytes(self) -> bytes | None:
        """The captured bytes of the last stage."""
        return self.stages[-1].stdout_bytes

    @property
    def stderr_bytes(self) -> bytes | None:
        """The captured bytes of all stages, one stage after the other."""
        captured = [one.stderr_bytes for one in self.stages if one.stderr_bytes is not None]
        return b"".join(captured) if captured else None

    @property
    def survivors(self) -> list[Survivor]:
        """Processes that could not be stopped, of all stages."""
        return [survivor for one in self.stages for survivor in one.survivors]

    @property
    def returncode(self) -> int | None:
        """0 if it is `ok`; else the code of the last stage that is to blame, or where all were
        stopped, of the last that this has ended; -N after signal N, None if unknown."""
        if self.ok:
            return 0
        codes = [
            [one.returncode for one in self.stages if one.judgement == judgement]
            for judgement in ("failed", "collateral")
        ]
        to_tell = codes[0] or codes[1]
        return to_tell[-1] if to_tell else None

    @property
    def explanation(self) -> str:
        """The outcome in words: who failed and why, with the end of its stderr, and who ended
        only because of it."""
        return self._explanation

    def __bool__(self) -> AskOk:
        raise no_truth(self, "ok")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            from ._missing import PIPELINE, missing

            raise missing(self, name, PIPELINE)

    def check_returncode(self) -> None:
        """Raises `CalledProcessError` unless it is `ok`."""
        if not self.ok:
            raise self._failure(self, self._explanation)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON has it: plain values only."""
        return {
            "success": self.ok,
            "rule": self.rule,
            "reason": self.reason,
            "outcome": self.outcome,
            "duration_s": self.duration_s,
            "stages": [one.to_dict() for one in self.stages],
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """The result as JSON. What is not UTF-8 is `{"base64": "..."}`."""
        return as_json(self.to_dict(), indent)

    def __repr__(self) -> str:
        judged = ", ".join(f"{one.argv[0]}: {one.judgement}" for one in self.stages)
        return f"PipelineResult(ok={self.ok}, reason={self.reason!r}, stages=[{judged}])"
