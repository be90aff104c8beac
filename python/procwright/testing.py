"""For tests of code that runs programs: programs that are played, and runs that are replayed.

>>> import procwright
>>> from procwright.testing import Fake
>>> with Fake() as fake:
...     date = fake.register(["date", ...], stdout="Friday\\n")
...     procwright.run(["date", "+%A"], text=True).stdout
'Friday\\n'
>>> date.call_count
1
"""

from __future__ import annotations

from ._cassette import Cassette
from ._fake import Fake, Registered
from ._fake_calls import Call, NotRegistered, UnexpectedInput
from ._fake_reply import Err, Hang, In, Out, Pause, Reply, not_found

__all__ = [
    "Call",
    "Cassette",
    "Err",
    "Fake",
    "Hang",
    "In",
    "NotRegistered",
    "Out",
    "Pause",
    "Registered",
    "Reply",
    "UnexpectedInput",
    "not_found",
]
