# What is wrong with the syntax of scripts: a JSON list of them on standard input, a list of
# [line, message] or null on standard output. Nothing is run.
import ast, json, sys, warnings

warnings.simplefilter("ignore")


def wrong(code):
    before = 0
    try:
        try:
            ast.parse(code)
        except IndentationError:
            # Code that is indented as a whole is taken, as the worker takes it.
            first = next((line for line in code.splitlines() if line.strip()), "")
            if not first[:1].isspace():
                raise
            before = 1
            ast.parse("if 1:\n" + code)
    except SyntaxError as error:
        return [max((error.lineno or 1) - before, 1), "%s: %s" % (type(error).__name__, error.msg)]
    except Exception:
        return None


print(json.dumps([wrong(code) for code in json.load(sys.stdin)]))
