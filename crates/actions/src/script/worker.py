# A worker of the engine: one job a line on standard input, one answer a line on standard output.
# Whatever a script prints goes to standard error, which the engine logs. It ends with its input.
def serve():
    import ast
    import builtins
    import datetime
    import io
    import json
    import keyword
    import math
    import os
    import re
    import resource
    import sys
    import threading
    import traceback
    import types

    MAX_ANSWER = 16 << 20
    MAX_DEPTH = 96
    MAX_MESSAGE = 2000
    # A worker that has grown beyond this, in KiB, is not used again.
    MAX_RESIDENT = 256 << 10
    FILE = "<script>"
    dumps, loads = json.dumps, json.loads
    home = os.getcwd()
    environment = dict(os.environ)
    path = [entry for entry in sys.path if entry]

    jobs = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)

    class Refused(Exception):
        """A value that JSON cannot hold; `type_only` when it is of a type that JSON lacks."""

        def __init__(self, where, what, type_only):
            super().__init__("`%s` %s" % (where, what))
            self.type_only = type_only

    class TooLarge(Exception):
        pass

    class End:
        """What a function body gives that came to its end without `return`."""

        def __init__(self, names):
            self.names = names

    class Result(dict):
        """A result of a parallel branch, as The Edge Agent has it: its fields are attributes too,
        and its state's keys are keys of it."""

        def __missing__(self, key):
            return (dict.get(self, "state") or {})[key]

        def __contains__(self, key):
            return dict.__contains__(self, key) or key in (dict.get(self, "state") or {})

        def get(self, key, default=None):
            if dict.__contains__(self, key):
                return dict.get(self, key, default)
            return (dict.get(self, "state") or {}).get(key, default)

        def __getattr__(self, name):
            if name == "to_dict":
                return lambda: dict(self)
            if dict.__contains__(self, name):
                return dict.__getitem__(self, name)
            raise AttributeError(name)

    FIELDS = {"branch", "success", "state", "error", "attempt_errors", "exit_code"}

    def with_results(given):
        state = given.get("state")
        all = state.get("parallel_results") if isinstance(state, dict) else None
        if isinstance(all, list):
            for index, one in enumerate(all):
                if isinstance(one, dict) and FIELDS <= one.keys():
                    all[index] = Result(one)
            given.setdefault("parallel_results", all)

    class Actions:
        def __getattr__(self, name):
            raise RuntimeError(
                "actions.%s cannot be called from a script: use a node with `uses: %s` instead"
                % (name, name)
            )

        def __getitem__(self, name):
            return getattr(self, str(name))

    def check(value, where, depth, open_ids):
        """Says by name what is no JSON."""
        if value is None or isinstance(value, bool):
            return
        if isinstance(value, int):
            if not -(1 << 63) <= value < 1 << 63:
                raise Refused(where, "is an integer of more than 64 bits", False)
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise Refused(where, "is %r, which is no JSON number" % value, False)
        elif isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError:
                raise Refused(where, "is text that is not valid Unicode", False) from None
        elif isinstance(value, (list, tuple, dict)):
            if id(value) in open_ids:
                raise Refused(where, "holds itself", False)
            if depth >= MAX_DEPTH:
                raise Refused(where, "nests deeper than %d levels" % MAX_DEPTH, False)
            open_ids.add(id(value))
            if isinstance(value, dict):
                for key, item in value.items():
                    if not isinstance(key, (str, int, float, bool, type(None))):
                        kind = type(key).__name__
                        raise Refused(where, "has a key of type %s" % kind, True)
                    check(key, where, depth, open_ids)
                    check(item, "%s.%s" % (where, key), depth + 1, open_ids)
            else:
                for index, item in enumerate(value):
                    check(item, "%s[%d]" % (where, index), depth + 1, open_ids)
            open_ids.discard(id(value))
        else:
            kind = type(value).__name__
            raise Refused(where, "is of type %s, which is no JSON value" % kind, True)

    # Digits that may be an integer of more than 64 bits.
    long_number = re.compile(rb"[0-9]{19}").search

    def encode(value, where):
        try:
            text = dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            data = text.encode()
        except (TypeError, ValueError, RecursionError):
            # The slow way, which knows the name.
            check(value, where, 0, set())
            raise Refused(where, "is no JSON value", True) from None
        if long_number(data):
            check(value, where, 0, set())
        if len(data) > MAX_ANSWER:
            raise TooLarge("`%s` is larger than %d MiB" % (where, MAX_ANSWER >> 20))
        return data

    def parse(code):
        """The tree, and how many lines were put before the code."""
        try:
            return ast.parse(code, FILE), 0
        except IndentationError:
            first = next((line for line in code.splitlines() if line.strip()), "")
            if not first[:1].isspace():
                raise
        # All of it is indented. Text in quotes stays as it is.
        tree = ast.parse("if 1:\n" + code, FILE)
        if len(tree.body) == 1:
            tree.body = tree.body[0].body
        return tree, 1

    def as_function(tree, given):
        """The same statements as the body of a function whose parameters are the given names."""
        shared = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
        names = [name for name in given if name not in shared]
        outer = ast.parse("def _windlass_body(%s):\n    return _windlass_end(locals())" % ", ".join(names))
        function = outer.body[0]
        for node in ast.walk(function):
            if hasattr(node, "lineno"):
                node.lineno = node.end_lineno = 1
        function.body = tree.body + function.body
        return outer, names

    def is_name(name):
        return name.isidentifier() and not keyword.iskeyword(name)

    def execute(code, given):
        """What it gives, whether that is the code's own word, and the names it left behind.

        Code that holds `return` is the body of a function, which gives null or its local `result`
        when it comes to its end without."""
        scope = {"__name__": "__script__", "__builtins__": builtins}
        scope.update(json=json, re=re, datetime=datetime, actions=Actions())
        scope.update((name, value) for name, value in given.items() if is_name(name))
        known = dict(scope)
        tree, _ = parse(code)
        fresh = {}
        if any(isinstance(node, ast.Return) for node in ast.walk(tree)):
            names = [name for name in known if not name.startswith("__")]
            tree, names = as_function(tree, names)
            scope["_windlass_end"] = End
            exec(compile(tree, FILE, "exec", dont_inherit=True), scope)
            result = scope["_windlass_body"](*[known[name] for name in names])
            returned = True
            if isinstance(result, End):
                result = result.names.get("result")
                if result is known.get("result"):
                    result = None
        else:
            exec(compile(tree, FILE, "exec", dont_inherit=True), scope)
            missing = object()
            fresh = {
                name: value
                for name, value in scope.items()
                if not name.startswith("_") and known.get(name, missing) is not value
            }
            result, returned = fresh.get("result"), False
        return result, returned, fresh

    NOT_DATA = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)

    def data_of(fresh):
        """The names that hold data. What JSON has no type for stays behind, with a word."""
        found = {}
        for name, value in fresh.items():
            if isinstance(value, NOT_DATA):
                continue
            try:
                found[name] = encode(value, name)
            except Refused as error:
                if not error.type_only:
                    raise
                print("not kept: %s" % error, file=sys.stderr)
        return found

    def line_of(error, before):
        line = None
        if isinstance(error, SyntaxError) and error.filename == FILE:
            line = error.lineno
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == FILE:
                line = frame.lineno
        return line - before if line else None

    def failed(error, code):
        try:
            words = error.msg if isinstance(error, SyntaxError) else str(error)
        except BaseException:
            words = ""
        try:
            before = parse(code)[1]
        except BaseException:
            before = 0
        kind = "raised"
        if isinstance(error, TooLarge):
            kind = "too_large"
        return dumps({
            "failed": kind,
            "type": "TypeError" if isinstance(error, Refused) else type(error).__name__,
            "message": str(words)[:MAX_MESSAGE],
            "line": line_of(error, before),
        }).encode()

    def answer(job):
        given, live = job["globals"], job["live"]
        try:
            if job["folder"] is not None:
                os.chdir(job["folder"])
            with_results(given)
            kept = given.get(live) if live is not None else None
            result, returned, fresh = execute(job["code"], given)
            found = data_of(fresh)
            members = (dumps(name).encode() + b":" + data for name, data in found.items())
            parts = [
                b'"returned":' + (b"true" if returned else b"false"),
                b'"result":' + (encode(result, "result") if returned else found.get("result", b"null")),
                b'"state":' + encode(kept, live or "state"),
                b'"locals":{' + b",".join(members) + b"}",
            ]
            if sum(map(len, parts)) > MAX_ANSWER:
                raise TooLarge("the script gives more than %d MiB" % (MAX_ANSWER >> 20))
            return parts
        except BaseException as error:
            return [b'"fault":' + failed(error, job["code"])]

    def prepare(job):
        os.environ.clear()
        os.environ.update(environment)
        os.environ.update(job["env"])
        os.chdir(home)
        sys.path[:] = path
        sys.stdin = open(os.devnull)
        for name, number in (("stdout", 1), ("stderr", 2)):
            raw = os.fdopen(os.dup(number), "wb", buffering=0)
            stream = io.TextIOWrapper(
                io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True
            )
            setattr(sys, name, stream)
        limit(job["memory"])

    def limit(memory):
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        if memory is None:
            memory = hard
        elif hard != resource.RLIM_INFINITY:
            memory = min(memory, hard)
        try:
            resource.setrlimit(resource.RLIMIT_AS, (memory, hard))
        except (ValueError, OSError):
            pass

    def is_spent():
        """Whether the script left something behind that the next one should not live with."""
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident > MAX_RESIDENT:
            return True
        if threading.active_count() > 1:
            return True
        try:
            return os.waitpid(-1, os.WNOHANG)[0] == 0
        except OSError:
            return False

    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    while True:
        line = jobs.readline()
        if not line:
            os._exit(0)
        job = loads(line)
        prepare(job)
        parts = answer(job)
        # The next job is read without the limits of this one.
        limit(None)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        spent = is_spent()
        head = b'{"id":%d,"spent":%s,' % (job["id"], b"true" if spent else b"false")
        data = memoryview(head + b",".join(parts) + b"}\n")
        while data:
            data = data[answers.write(data):]


serve()
