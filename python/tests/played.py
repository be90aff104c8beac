"""Pipelines that a `Fake` plays beside real ones whose programs do what it plays."""

import procwright
from procwright import Fan
from procwright._options import quoted
from procwright.testing import Fake, Reply


def says(text, code=0, err=""):
    return Reply(stdout=text, stderr=err, returncode=code)


def upper(call):
    return says(call.input.upper())


def numbered(call):
    return says(b"".join(b"> " + line for line in call.input.splitlines(keepends=True)))


def played_and_real(stages, **options):
    """The results of both. A stage is a line for the shell with the reply that does what it does,
    or a list of such, which is a `Fan`."""
    flat = [one for stage in stages for one in (stage if isinstance(stage, list) else [stage])]

    def joined(programs):
        programs = iter(programs)
        return [
            Fan(*(next(programs) for _ in stage)) if isinstance(stage, list) else next(programs)
            for stage in stages
        ]

    # By which the texts tell them apart.
    names = [f"p{place}" for place in range(len(flat))]
    with Fake() as fake:
        for name, (_, reply) in zip(names, flat, strict=True):
            fake.register([name], reply)
        played = procwright.pipeline(*joined([[name] for name in names]), **options)
    lines = [["sh", "-c", line, name] for name, (line, _) in zip(names, flat, strict=True)]
    return played, procwright.pipeline(*joined(lines), **options)


def check_played_as_real(stages, options):
    """Asserts that what is played comes out as what really runs, the texts among it."""
    played, real = played_and_real(stages, **options)
    for name in ("ok", "returncode", "reason", "rule", "outcome", "stdout"):
        assert getattr(played, name) == getattr(real, name), name
    for place, (one, other) in enumerate(zip(played.stages, real.stages, strict=True)):
        for name in ("judgement", "outcome", "stdout", "stderr", "function"):
            assert getattr(one, name) == getattr(other, name), (place, name)
        assert (one.stdout_info is None) == (other.stdout_info is None), place
        assert (one.fan is None) == (other.fan is None), place
        if one.fan is not None and real.ok and real.stages[0].judgement == "success":
            # What comes out of a writer that has no end is by chance.
            assert (one.fan.bytes_in, one.fan.bytes_out) == (
                other.fan.bytes_in,
                other.fan.bytes_out,
            )
    # The texts are the same but for the commands.
    said = [real.summary, real.explanation]
    for stage in real.stages:
        said = [text.replace(quoted(stage.argv), stage.argv[-1]) for text in said]
    assert [played.summary, played.explanation] == said
