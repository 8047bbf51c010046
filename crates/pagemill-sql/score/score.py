#!/usr/bin/env python3
"""Compares pagemill-sql's answers with a server's, statement by statement.

Takes .sql files (PostgreSQL's own src/test/regress/sql, say), takes every SELECT, WITH, VALUES and TABLE statement out
of them, and asks both a server and pagemill-sql, which reads a stopped copy of that server's data directory. Needs
nothing but Python 3 and psql, and the example built: cargo build --example answers.

    score.py --pgdata COPY --dbname regression --psql 'psql -h SOCKETS -p PORT -U postgres' \\
        --program target/debug/examples/answers --out RESULTS sql/*.sql

Both must stand for the same moment: run what fills the database, CHECKPOINT, stop, copy, start again. The server's
TimeZone must be UTC, its DateStyle ISO.

The classes:

    equal        the same columns and rows; the order counts under ORDER BY only
    equal error  both refuse, in the same words
    refused      pagemill-sql says that it does not support this
    other error  pagemill-sql fails, where the server answers or has other words
    ties         ORDER BY, the same rows, another order: rows that are equal for it, or a wrong order (look at it)
    choice       LIMIT and the like without a whole order: both may be right (look at it)
    late error   the server fails on a value that pagemill-sql never came to (look at it)
    WRONG        other rows, other columns, or an answer to what the server refuses

Left out: what has volatile functions or clocks, what names objects that the server has no more, what times out there, rows of no columns.
In RESULTS, a file per class lists the statements with both answers.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict

NULL = "(the null)"
VOLATILE = re.compile(
    r"""\b(random|random_normal|setseed|now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday|
    nextval|currval|lastval|setval|set_config|gen_random_uuid|uuidv[47]|uuid_generate\w*|current_timestamp|current_date|
    current_time|localtime|localtimestamp|pg_backend_pid|txid_\w+|pg_current_\w+|pg_stat\w*|pg_sleep\w*|
    pg_advisory\w*|pg_try_advisory\w*|pg_notify|lo_\w+|current_query|pg_locks|pg_prepared\w*|pg_cursors|pg_settings|
    pg_postmaster\w*|pg_conf_load_time|pg_snapshot\w*|pg_visible\w*|pg_control\w*|pg_wal\w*|pg_switch\w*|pg_ls\w*|
    pg_read\w*|pg_backend\w*|pg_log\w*|age|pg_relation_filepath|pg_is_in_recovery|pg_get_multixact\w*|
    pg_available\w*|pg_shmem\w*|pg_aios|inet_server\w*|inet_client\w*|pg_hba\w*|pg_config|current_setting)\b
    |'(now|today|tomorrow|yesterday)\b""",
    re.IGNORECASE | re.VERBOSE,
)
CHOICE = re.compile(
    r"\b(limit|fetch|offset|distinct\s+on|row_number|first_value|last_value|nth_value|lag|lead|ntile|array_agg"
    r"|string_agg|json_agg|jsonb_agg|xmlagg|rows\s+(between|unbounded|current|\d)|tablesample|any_value|json_object_agg"
    r"|groups\s+between|over)\b",
    re.IGNORECASE,
)
MISSING = re.compile(r"42P01|3F000|42704|3D000|26000|34000|25006|25P02|57014|42501|55000|58P01|0A000")
LATE = re.compile(r"(22...|21000|23...|P0001|54001)$")


def statements(text):
    """The statements of a psql script, without their semicolons; backslash commands and COPY's data are left out."""
    found, start, i, depth, n = [], 0, 0, 0, len(text)

    def take(end):
        piece = text[start:end].strip()
        if piece:
            found.append(piece)

    def end_of_line(at):
        end = text.find("\n", at)
        return n if end < 0 else end

    while i < n:
        c = text[i]
        if text.startswith("--", i):
            end = end_of_line(i)
            if not text[start:i].strip():
                start = end
            i = end
        elif text.startswith("/*", i):
            level, j = 1, i + 2
            while j < n and level:
                if text.startswith("/*", j):
                    level, j = level + 1, j + 2
                elif text.startswith("*/", j):
                    level, j = level - 1, j + 2
                else:
                    j += 1
            if not text[start:i].strip():
                start = j
            i = j
        elif c in "'\"":
            escapes = c == "'" and i > 0 and text[i - 1] in "eE" and not (i > 1 and (text[i - 2].isalnum() or text[i - 2] == "_"))
            j = i + 1
            while j < n:
                if escapes and text[j] == "\\":
                    j += 2
                elif text[j] == c:
                    if text.startswith(c, j + 1):
                        j += 2
                    else:
                        break
                else:
                    j += 1
            i = j + 1
        elif c == "$" and not (i and (text[i - 1].isalnum() or text[i - 1] == "_")):
            tag = re.compile(r"\$([A-Za-z_\u0080-\uffff][\w]*)?\$").match(text, i)
            if tag:
                end = text.find(tag.group(), tag.end())
                i = n if end < 0 else end + len(tag.group())
            else:
                i += 1
        elif c == "(":
            depth, i = depth + 1, i + 1
        elif c == ")":
            depth, i = max(0, depth - 1), i + 1
        elif c == "\\":
            end = end_of_line(i)
            take(i)
            i = start = end
            depth = 0
        elif c == ";" and depth == 0:
            piece = text[start:i]
            if re.search(r"\bbegin\s+atomic\b", piece, re.I) and not re.search(r"\bend\s*$", piece, re.I):
                i += 1
                continue
            take(i)
            i = start = i + 1
            if re.match(r"\s*copy\b.*\bfrom\s+stdin\b", piece, re.I | re.S):
                end = text.find("\n\\.", i)
                i = start = n if end < 0 else end_of_line(end + 1)
        else:
            i += 1
    return found


def is_query(statement):
    bare = re.sub(r"--[^\n]*|/\*.*?\*/", " ", statement, flags=re.S).lstrip(" \t\r\n(")
    word = re.match(r"[a-zA-Z]+", bare)
    if not word or word.group().lower() not in ("select", "with", "values", "table"):
        return False
    if re.search(r"(^|[\s(])(insert\s+into|update\s+\S+\s+set|delete\s+from|merge\s+into)\b", bare, re.I) and word.group().lower() == "with":
        return False
    if re.search(r"\$\d|:'|:\"|\binto\s+(temp|table|unlogged|\w+\s+from)|\bfor\s+(no\s+key\s+)?(update|share|key\s+share)\b", bare, re.I):
        return False
    return not VOLATILE.search(bare)


def unquoted_words(statement):
    return re.sub(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", " ", statement, flags=re.S)


def is_ordered(statement):
    """ORDER BY outside of all parentheses."""
    bare, depth, out = unquoted_words(statement), 0, []
    for c in bare:
        depth += (c == "(") - (c == ")")
        out.append(c if depth <= (1 if bare.lstrip().startswith("(") else 0) else " ")
    return re.search(r"\border\s+by\b", "".join(out), re.I) is not None


def parse_csv(text, empty_is_null):
    """Rows of texts; None for NULL, which pagemill-sql writes as nothing, the server as NULL above."""
    rows, row, i, n = [], [], 0, len(text)
    while i < n:
        if text[i] == '"':
            j, parts = i + 1, []
            while True:
                end = text.index('"', j)
                parts.append(text[j:end])
                if text.startswith('"', end + 1):
                    parts.append('"')
                    j = end + 2
                else:
                    break
            value, i = "".join(parts), end + 1
        else:
            j = i
            while j < n and text[j] not in ",\n":
                j += 1
            value, i = text[i:j], j
            if value == ("" if empty_is_null else NULL):
                value = None
        row.append(value)
        if i < n and text[i] == ",":
            i += 1
            if i >= n or text[i] == "\n":
                row.append(None if empty_is_null else "")
        if i < n and text[i] == "\n":
            rows.append(row)
            row, i = [], i + 1
    if row:
        rows.append(row)
    return rows


def ask_server(psql, dbname, queries):
    """Per query ('rows', text), ('error', state, message) or None where it timed out or died."""
    mark = "@@@@ end of "
    lines = [
        "\\set VERBOSITY verbose", "\\pset format csv", f"\\pset null '{NULL}'", "\\pset footer off",
        "set default_transaction_read_only = on; set statement_timeout = '8s'; set client_min_messages = error;",
        "set jit = off; set max_parallel_workers_per_gather = 0;",
    ]
    for number, query in enumerate(queries):
        lines += [query + "\n;", f"\\echo '{mark}{number}'"]
    out = subprocess.run(
        psql.split() + ["-X", "-q", "-d", dbname, "-f", "-"], input="\n".join(lines).encode(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    ).stdout.decode("utf-8", "replace")
    answers = []
    for number in range(len(queries)):
        body, found, out = out.partition(f"{mark}{number}\n")
        if not found:
            answers.append(None)
            continue
        error = re.search(r"^(?:psql:\S+ )?(?:ERROR|FATAL):  (\w{5}): (.*)$", body, re.M)
        if error:
            answers.append(("error", error.group(1), error.group(2)))
        elif re.search(r"connection to server|server closed|invalid command", body):
            answers.append(None)
        else:
            answers.append(("rows", re.sub(r"^(psql:\S+ )?(WARNING|NOTICE|INFO):.*\n(LOCATION:.*\n)?", "", body, flags=re.M)))
    return answers


def ask_pagemill(arguments, queries):
    """Per query ('rows', text) or ('error', message). One that kills the process is an error, and another goes on."""
    answers = []
    while len(answers) < len(queries):
        command = [arguments.program, "-D", arguments.pgdata, "-d", arguments.dbname] + arguments.option
        asked = "".join(query + "\0" for query in queries[len(answers) :])
        try:
            ran = subprocess.run(command, input=asked.encode(), capture_output=True, timeout=600, check=False)
            out, code, err = ran.stdout, ran.returncode, ran.stderr
        except subprocess.TimeoutExpired as late:
            out, code, err = late.stdout or b"", 124, b"timeout"
        for piece in out.decode("utf-8", "replace").split("\0")[:-1]:
            kind, text = piece[:1], piece[1:]
            answers.append(("rows", text) if kind == "A" else ("error", "PANIC" if kind == "P" else text))
        if len(answers) < len(queries):
            answers.append(("error", f"PANIC: the process ended with {code}: {err.decode('utf-8', 'replace')[-300:]}"))
    return answers


def matches(statement, server, ours):
    """The class of two answers with rows, or None where they differ."""
    theirs, mine = parse_csv(server, False), parse_csv(ours, True)
    if theirs == mine:
        return "equal"
    if theirs[:1] != mine[:1]:
        return "WRONG"
    if len(theirs) == len(mine) and Counter(map(tuple, theirs)) == Counter(map(tuple, mine)):
        return "ties" if is_ordered(statement) else "equal"
    return "choice" if CHOICE.search(unquoted_words(statement)) else "WRONG"


def judge(statement, server, ours):
    if server is None:
        return "left out"
    if ours[0] == "error":
        message = ours[1]
        first = message.split("\n")[0]
        if server[0] == "error":
            if server[1] in ("42P01", "3F000"):
                return "left out"
            if server[2] == first or server[2] in first:
                return "equal error"
            if MISSING.match(server[1]):
                return "left out"
        return "refused" if "not supported" in message else "other error"
    if server[0] == "error":
        if server[1] in ("57014", "25006", "42501", "55000", "25P02"):
            return "left out"
        return "late error" if LATE.match(server[1]) else "WRONG"
    if not server[1].strip():
        # psql's CSV does not say how many rows there are of no columns.
        return "left out"
    return matches(statement, server[1], ours[1])


def shown(answer):
    if answer is None:
        return "(nothing)"
    return " ".join(answer) if answer[0] == "error" else answer[1].rstrip("\n")


def score(path, arguments):
    with open(path, encoding="utf-8", errors="replace") as file:
        queries = [s for s in statements(file.read()) if is_query(s)]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask_server, arguments.psql, arguments.dbname, queries)
        ours = ask_pagemill(arguments, queries)
        servers = asked.result()
    return [(q, judge(q, s, o), s, o) for q, s, o in zip(queries, servers, ours)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pgdata", required=True)
    parser.add_argument("--dbname", required=True)
    parser.add_argument("--psql", required=True, help="how psql is started, without -d")
    parser.add_argument("--program", required=True)
    parser.add_argument("--out", required=True, help="a directory for the lists")
    parser.add_argument("--option", action="append", default=[], help="one more option for the program; repeatable")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    classes = ["equal", "equal error", "refused", "other error", "ties", "choice", "late error", "WRONG", "left out"]
    totals, lists = Counter(), defaultdict(list)
    print(f"{'file':28}" + "".join(f"{name:>12}" for name in classes), flush=True)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for path, results in zip(arguments.files, pool.map(lambda f: score(f, arguments), arguments.files)):
            name = os.path.basename(path)
            counts = Counter(kind for _, kind, _, _ in results)
            totals += counts
            print(f"{name[:27]:28}" + "".join(f"{counts[kind] or '.':>12}" for kind in classes), flush=True)
            for query, kind, server, ours in results:
                lists[kind].append(f"==== {name}\n{query};\n---- server\n{shown(server)}\n---- pagemill\n{shown(ours)}\n")
            for kind in classes:
                with open(os.path.join(arguments.out, kind.replace(" ", "_") + ".txt"), "w", encoding="utf-8") as file:
                    file.write("\n".join(lists[kind]))
    print(f"{'TOTAL':28}" + "".join(f"{totals[kind]:>12}" for kind in classes))
    return 1 if totals["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
