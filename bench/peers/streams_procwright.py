"""Ours from Python: a child's streams, read ahead (`spill`) and as the bare pipe (`bare`)."""

import procwright

from streams_subject import Subjects, by_line, by_read1, by_readinto, reap

subjects = Subjects()


def with_spawn(argv, read, **options):
    child = procwright.spawn(argv, stderr=procwright.INHERIT, **options)
    seen = read(child.stdout)
    reap(child.wait())
    return seen


def add(name, read, **options):
    subjects[f"{name}_spill"] = lambda argv: with_spawn(argv, read, **options)
    subjects[f"{name}_bare"] = lambda argv: with_spawn(argv, read, overflow="block", **options)


add("read1", by_read1)
add("readinto", by_readinto)
add("lines", by_line)
add("text", by_line, text=True)

subjects.main()
