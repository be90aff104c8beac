"""Peers: packages that run programs: `plumbum` and `sh`, line by line as they advise."""

import sys

from streams_subject import Subjects, by_line, reap

subjects = Subjects()


@subjects.add
def plumbum_lines(argv):
    from plumbum import local

    size = lines = 0
    for line, _ in local[argv[0]][argv[1:]].popen():
        lines += 1
        # It takes the end of a line away.
        size += len(line) + 1
    return size, lines


@subjects.add
def sh_lines(argv):
    import sh

    running = sh.Command(argv[0])(*argv[1:], _iter=True, _return_cmd=True)
    seen = by_line(running)
    reap(running.exit_code)
    return seen


if __name__ == "__main__" and sys.argv[1:]:
    subjects.main()
