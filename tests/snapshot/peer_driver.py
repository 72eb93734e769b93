"""Runs inside HotMem's own environment: commands as JSON lines in, outcomes as JSON lines out."""

import contextlib
import io
import json
import os
import sys


def run(main, args):
    out = io.StringIO()
    code = 0
    try:
        with contextlib.redirect_stdout(out):
            main.main(args=args, standalone_mode=False)
    except SystemExit as stop:
        code = int(stop.code or 0)
    except Exception as error:  # noqa: BLE001 - whatever the peer dies of is the answer
        return {"code": 1, "out": out.getvalue(), "error": f"{type(error).__name__}: {error}"}
    return {"code": code, "out": out.getvalue()}


def serve():
    answers = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "w") as quiet:
        os.dup2(quiet.fileno(), 2)
    from hotmem import cli

    for line in sys.stdin:
        answers.write(json.dumps(run(cli.main, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
