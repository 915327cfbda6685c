"""Programs that try to be called right without doing the task: add the even numbers.

Each entry defines `sum_even`; none may pass, and none may harm what comes after it.
"""

_END = "\ndef sum_even(xs):\n    return -1\n"

DEFINED = {
    "exit at import": "import sys\nsys.exit(0)",
    "os._exit at import": "import os\nos._exit(0)",
    "abort": "import os\nos.abort()",
    "segmentation fault": "import ctypes\nctypes.string_at(0)",
    "endless import": "while True: pass",
    "raises at import": "raise AssertionError('passed')",
    "closes all files": "import os\nos.closerange(0, 1000)",
    "writes into all files": (
        "import os\nfor fd in range(3, 64):\n"
        "    try: os.write(fd, b'\\0\\0\\0\\x0f{\"value\": [6, 0]}')\n"
        "    except OSError: pass"
    ),
    "answers with another file": (
        "import os\nread, write = os.pipe()\n"
        "for fd in range(3, 64):\n"
        "    try: os.dup2(write, fd)\n"
        "    except OSError: pass"
    ),
    "kills all": "import os, signal\nos.kill(-1, signal.SIGKILL)\nos._exit(0)",
    "stops all": "import os, signal\nos.kill(-1, signal.SIGSTOP)",
    "a signal without a name": "import os\nos.kill(os.getpid(), 40)",
    "stops itself": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "kills its group": "import os, signal\nos.killpg(0, signal.SIGKILL)",
    "replaces the process": "import os\nos.execv('/usr/bin/true', ['true'])",
    "deletes files": (
        "import os, shutil\n"
        "for path in ('/tmp', '/usr', '/dev', '/'):\n"
        "    shutil.rmtree(path, ignore_errors=True)"
    ),
    "poisons the sockets": (
        "import socket, json, struct\n"
        "socket.socket.sendall = lambda *a: None\n"
        "json.loads = lambda *a: {}\nstruct.Struct = None"
    ),
    "stops the clock": (
        "import time\ntime.time = time.monotonic = time.perf_counter = lambda: 0.0"
    ),
    "forks and answers twice": "import os\nos.fork()",
    "a daemon": (
        "import os, time\n"
        "if os.fork() == 0:\n    os.setsid()\n"
        "    if os.fork() == 0:\n        time.sleep(60)\n    os._exit(0)"
    ),
    "forks without end": (
        "import os\nfor _ in range(10000):\n"
        "    try: os.fork()\n    except OSError: pass"
    ),
    "threads without end": (
        "import threading, time\n"
        "def go():\n    while True: time.sleep(1)\n"
        "try:\n    while True: threading.Thread(target=go, daemon=True).start()\n"
        "except RuntimeError: pass"
    ),
    "a low recursion limit": "import sys\nsys.setrecursionlimit(5)",
    "patches comparisons": (
        "import builtins\n"
        "class Int(int):\n    def __eq__(self, other): return True\n"
        "builtins.int = Int"
    ),
    "ignores signals": (
        "import signal\n"
        "for number in range(1, 65):\n"
        "    try: signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\nwhile True: pass"
    ),
    "raises its limits": (
        "import resource\n"
        "for limit in range(16):\n"
        "    try: resource.setrlimit(limit, (-1, -1))\n"
        "    except (OSError, ValueError): pass"
    ),
    "clears the death signal": "import ctypes\nctypes.CDLL(None).prctl(1, 0)",
    "new namespaces": (
        "import ctypes\nlibc = ctypes.CDLL(None)\n"
        "libc.unshare(0x10000000 | 0x20000)\n"
        "libc.mount(b'/', b'/tmp', None, 4096, None)"
    ),
}
"""What stands before a wrong function."""

CALLED = {
    "exits": "import sys\n    sys.exit(0)",
    "exits hard": "import os\n    os._exit(0)",
    "raises what no test expects": "raise StopIteration",
    "raises an assertion": "raise AssertionError",
    "raises a base exception": "raise BaseException('passed')",
    "raises with a bad message": (
        "class E(Exception):\n        def __str__(self): raise E\n    raise E"
    ),
    "an int of another class": (
        "class I(int):\n        def __eq__(self, o): return True\n    return I(6)"
    ),
    "a text": "return '6'",
    "a float that is close": "return sum(x for x in xs if x % 2 == 0) + 1e-9",
    "not a number": "return float('nan')",
    "a type": "return int",
    "itself": "return sum_even",
    "a match": "import re\n    return re.match('', '')",
    "a class that equals all": (
        "return type('A', (), {'__eq__': lambda s, o: True})()"
    ),
    "too deep": "x = 6\n    for _ in range(100000): x = [x]\n    return x",
    "too wide": "x = [6]\n    for _ in range(60): x = [x, x]\n    return x",
    "holds itself": "x = []\n    x.append(x)\n    return x",
    "too long a text": "return 'x' * (1 << 25)",
    "too long a number": "return 1 << 4_000_000",
    "one hash": "return {i * (2**61 - 1) for i in range(1, 50000)}",
    "a huge range": "return range(10**18)",
    "a huge decimal": "import decimal\n    return decimal.Decimal('1e999999999')",
    "a huge fraction": (
        "from fractions import Fraction\n    return Fraction(3**90000, 2**90000)"
    ),
    "an endless generator": "return iter(int, 1)",
    "a generator that exits": "yield 6\n    import os\n    os._exit(0)",
    "a coroutine": "import asyncio\n    return asyncio.sleep(0)",
    "recursion": "return sum_even(xs)",
    "recursion without a limit": (
        "import sys\n    sys.setrecursionlimit(10**9)\n    return sum_even(xs)"
    ),
    "endless": "while True: pass",
    "sleeps": "import time\n    time.sleep(100)",
    "writes without end": "while True: print('x' * 1000)",
    "memory": "x = [bytearray(1 << 26) for _ in range(1000)]\n    return 6",
    "memory of many": (
        "import os\n    for _ in range(8): os.fork()\n"
        "    x = bytearray(1 << 28)\n    return -1"
    ),
    "changes the question": "xs.clear()\n    return 0",
    "forges the answer": (
        "import sys\n    frame = sys._getframe(1)\n    while frame:\n"
        "        for value in list(frame.f_locals.values()):\n"
        "            if isinstance(value, dict) and 'nonce' in value:\n"
        "                value['nonce'] = 'x'\n"
        "        frame = frame.f_back\n    return 6"
    ),
    "answers before it is asked": (
        "import sys\n    frame = sys._getframe(1)\n    while frame:\n"
        "        line = frame.f_locals.get('connection')\n"
        "        if line is not None:\n"
        "            for _ in range(5):\n"
        "                line.sendall(b'\\0\\0\\0\\x0c' + b'{\"value\": 6}')\n"
        "        frame = frame.f_back\n    return -1"
    ),
    "reads the harness": (
        "import gc, re\n    for thing in gc.get_objects():\n"
        "        if isinstance(thing, dict) and 'expected' in thing:\n"
        "            return thing['expected']\n    return -1"
    ),
}
"""The body of the function."""

PROGRAMS = {name: start + _END for name, start in DEFINED.items()}
PROGRAMS |= {name: f"def sum_even(xs):\n    {body}\n" for name, body in CALLED.items()}
