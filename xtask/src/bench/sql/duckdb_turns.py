"""DuckDB's turns: a statement over Parquet files, or CSV from standard input into one. Prints milliseconds.

    duckdb_turns.py query DIRECTORY < STATEMENT     every DIRECTORY/*.parquet is a table
    duckdb_turns.py parquet NAMES FILE < CSV        standard input into a Parquet file, with these columns (name:type,…)
"""

import pathlib
import sys
import time

import duckdb


def query(directory):
    connection = duckdb.connect()
    connection.execute("set threads = 2")
    for path in sorted(pathlib.Path(directory).glob("*.parquet")):
        connection.execute(f"create view {path.stem} as select * from read_parquet('{path}')")
    statement = sys.stdin.read()
    begin = time.monotonic()
    rows = connection.execute(statement).fetchall()
    print((time.monotonic() - begin) * 1000, len(rows))


def parquet(names, file):
    connection = duckdb.connect()
    connection.execute("set threads = 2")
    columns = ", ".join("'{}': '{}'".format(*name.split(":")) for name in names.split(";"))
    connection.execute(
        f"copy (select * from read_csv('/dev/stdin', header = false, columns = {{{columns}}})) "
        f"to '{file}' (format parquet)"
    )


if __name__ == "__main__":
    {"query": query, "parquet": parquet}[sys.argv[1]](*sys.argv[2:])
