#!/usr/bin/env python3
"""Files of `pagemill export`, read back by pyarrow, DuckDB and Polars, and compared row by row with what COPY prints.

    read_back.py PAGEMILL DATA_DIRECTORY DBNAME TABLE [PARTITION_COLUMNS] [FLAG …]

The table is exported as Parquet, as an Arrow file and stream, and, where columns are named for it, as a directory of
Parquet files by their values; each is read by every library that is installed, and compared with the table's rows as
text and JSON, which Pagemill's own tests compare with the server's, byte for byte. What is not installed is told and
skipped. Flags are those of export, such as --arrays=json. The exit status is 1 when a value differs, and 0 when nothing was there to compare with.
"""

import datetime
import decimal
import importlib
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import uuid


def library(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"read_back: {name} is not installed: skipped")
        return None


def run(pagemill, data, database, table, *flags):
    command = [pagemill, "export", "-D", data, "-d", database, "-t", table, "--on-damage=stop", *flags]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def json_rows(text):
    return [canonical_json(json.loads(line, parse_float=decimal.Decimal)) for line in text.decode().splitlines()]


ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def copied_field(field):
    """A field of COPY's text format."""
    if field == "\\N":
        return None
    parts, rest = [], iter(field)
    for character in rest:
        if character == "\\":
            character = next(rest)
            character = ESCAPES.get(character, character)
        parts.append(character)
    return "".join(parts)


def copied_rows(text):
    return [[copied_field(field) for field in line.split("\t")] for line in text.decode().split("\n")[:-1]]


def canonical_number(value):
    number = decimal.Decimal(value)
    return f"{number.normalize() if number.is_finite() else number:f}"


def canonical_json(value):
    """A value of JSON, in a form that the same value of Arrow has, too."""
    if isinstance(value, dict):
        return {name: canonical_json(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [canonical_json(inner) for inner in value]
    if isinstance(value, (int, decimal.Decimal)) and not isinstance(value, bool):
        return canonical_number(value)
    return value


def canonical(value):
    """A value of Arrow as Python has it."""
    if isinstance(value, dict):
        return {name: canonical(inner) for name, inner in value.items()}
    if isinstance(value, list) and value and all(isinstance(inner, tuple) for inner in value):
        return {name: canonical(inner) for name, inner in value}
    if isinstance(value, list):
        return [canonical(inner) for inner in value]
    if isinstance(value, float):
        return canonical_number(repr(value))
    if isinstance(value, (int, decimal.Decimal)) and not isinstance(value, bool):
        return canonical_number(value)
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    return value


def fraction(text):
    """Python prints six places of a second or none, PostgreSQL as many as are needed."""
    head, point, rest = text.partition(".")
    digits = len(rest) - len(rest.lstrip("0123456789"))
    return f"{head}.{rest[:digits].ljust(6, '0')}{rest[digits:]}" if point and digits else text


def same(actual, wanted):
    if isinstance(actual, dict) and isinstance(wanted, dict):
        return actual.keys() == wanted.keys() and all(same(actual[name], wanted[name]) for name in actual)
    if isinstance(actual, list) and isinstance(wanted, list):
        return len(actual) == len(wanted) and all(map(same, actual, wanted))
    if isinstance(actual, bytes) and isinstance(wanted, str):
        return wanted == "\\x" + actual.hex() or wanted == actual.hex().upper() or wanted == str(uuid.UUID(bytes=actual)) \
            if len(actual) == 16 else wanted in ("\\x" + actual.hex(), actual.hex().upper())
    if actual == wanted:
        return True
    if isinstance(actual, str) and isinstance(wanted, str):
        return fraction(actual) == fraction(wanted)
    # Text of json, or of a number that no decimal holds.
    return isinstance(actual, str) and same_json(actual, wanted)


def same_json(actual, wanted):
    try:
        found = json.loads(actual, parse_float=decimal.Decimal)
    except ValueError:
        return False
    return canonical_json(found) == wanted


def compare(what, names, rows, wanted):
    """Compares rows, both in the same order; tells the first that differs."""
    if len(rows) != len(wanted):
        print(f"read_back: {what}: {len(rows)} rows, not {len(wanted)}")
        return False
    for number, (row, expected) in enumerate(zip(rows, wanted)):
        for name in names:
            if not same(canonical(row[name]), expected[name]):
                print(f"read_back: {what}: row {number}, {name}: {row[name]!r}, not {expected[name]!r}")
                return False
    print(f"read_back: {what}: {len(rows)} rows are the same")
    return True


def parquet_readers(path, hive=False):
    """Each library that is installed, and the rows that it reads."""
    if pyarrow := library("pyarrow"):
        dataset = importlib.import_module("pyarrow.dataset")
        how = {}
        if hive:
            names = [part.split("=")[0] for part in next(path.rglob("*.parquet")).relative_to(path).parts[:-1]]
            fields = [pyarrow.field(name, pyarrow.string()) for name in names]
            how["partitioning"] = dataset.partitioning(pyarrow.schema(fields), flavor="hive")
        yield "pyarrow", dataset.dataset(path, format="parquet", **how).to_table().to_pylist()
    if duckdb := library("duckdb"):
        pattern = str(path / "**" / "*.parquet") if hive else str(path)
        hive_flags = ", hive_partitioning = true, hive_types_autocast = false" if hive else ""
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = true")
        result = connection.sql(f"SELECT * FROM read_parquet(?{hive_flags})", params=[pattern])
        # By itself it wants one module more for moments with a zone.
        if importlib.util.find_spec("pyarrow"):
            yield "DuckDB", result.to_arrow_table().to_pylist()
        else:
            yield "DuckDB", [dict(zip(result.columns, row)) for row in result.fetchall()]
    if polars := library("polars"):
        frame = polars.read_parquet(path, hive_partitioning=hive, **({"try_parse_hive_dates": False} if hive else {}))
        yield "Polars", frame.to_dicts()


def arrow_readers(path, is_stream):
    if pyarrow := library("pyarrow"):
        open_file = pyarrow.ipc.open_stream if is_stream else pyarrow.ipc.open_file
        with pyarrow.OSFile(str(path)) as source:
            yield "pyarrow", open_file(source).read_all().to_pylist()
    if polars := library("polars"):
        read = polars.read_ipc_stream if is_stream else polars.read_ipc
        yield "Polars", read(path).to_dicts()


def order(rows, names):
    return sorted(rows, key=lambda row: json.dumps([row[name] for name in names], default=str))


def name_of(value):
    """The name that a value of a directory was read from: Polars guesses types."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def partitioned(source, by, directory, wanted):
    (columns, flags), path = by, directory / "partitioned"
    run(*source, "--format=parquet", f"--partition-by={columns}", "-j2", f"-o{path}", *flags)
    keys = columns.split(",")
    copied = copied_rows(run(*source, "--format=text", f"--columns={columns}"))
    words = {True: {"t": "true", "f": "false"}, False: {}}
    expected = []
    for row, texts in zip(wanted, copied):
        is_bool = [isinstance(row[key], bool) for key in keys]
        texts = [words[letter].get(text, text) for letter, text in zip(is_bool, texts)]
        expected.append({**row, **dict(zip(keys, texts))})
    names = list(wanted[0])
    # Rows of several files come in any order.
    expected = order(expected, names)
    is_fine = True
    for reader, rows in parquet_readers(path, hive=True):
        rows = [{**row, **{key: name_of(row[key]) for key in keys}} for row in rows]
        plain = [name for name in names if not isinstance(wanted[0][name], (dict, list))]
        for row in rows:
            row.update({name: canonical(row[name]) for name in plain})
        is_fine &= compare(f"partitioned, {reader}", names, order(rows, names), expected)
    return is_fine


def main(pagemill, data, database, table, *others):
    source = (pagemill, data, database, table)
    flags = [other for other in others if other.startswith("-")]
    wanted = json_rows(run(*source, "--format=json"))
    if not wanted:
        print("read_back: no rows")
        return 0
    names, is_fine = list(wanted[0]), True
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        for jobs in ("-j1", "-j2"):
            path = directory / f"t{jobs}.parquet"
            run(*source, "--format=parquet", jobs, f"-o{path}", *flags)
            for reader, rows in parquet_readers(path):
                is_fine &= compare(f"parquet {jobs}, {reader}", names, rows, wanted)
        for form in ("arrow", "arrow-stream"):
            path = directory / form
            run(*source, f"--format={form}", f"-o{path}", *flags)
            for reader, rows in arrow_readers(path, form == "arrow-stream"):
                is_fine &= compare(f"{form}, {reader}", names, rows, wanted)
        for columns in (other for other in others if not other.startswith("-")):
            is_fine &= partitioned(source, (columns, flags), directory, wanted)
    return 0 if is_fine else 1


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
