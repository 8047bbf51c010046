"""What psycopg 3 makes of values, as lines of text: in both forms, prepared, in parts, and where there are errors.

The first argument names the file of questions; where the server is, libpq finds in its environment.
Invariant: a question that fails is a line that says so, and the next one is asked all the same.
"""

import datetime
import decimal
import sys
import threading
import uuid

import psycopg
from psycopg.types.json import Jsonb

LONG = "select count(*) from kinds a, kinds b, kinds c where a.id * 1.5 < -b.id - c.id"


def told(error):
    # Of what is no statement every server has its own words.
    words = "" if error.sqlstate == "42601" else error.diag.message_primary or error
    return f"failed: {type(error).__name__} {error.sqlstate} {words}"


def ask(connection, text, values=None, **ways):
    binary = ways.pop("binary", False)
    print("==", "binary" if binary else "text", text, values)
    try:
        with connection.cursor(binary=binary) as cursor:
            cursor.execute(text, values, **ways)
            print([(column.name, column.type_code, column.precision, column.scale) for column in cursor.description])
            for row in cursor:
                print(row)
    except psycopg.Error as error:
        print(told(error))


def prepared(connection):
    values = (7, decimal.Decimal("2.33"), "n%", datetime.date(2000, 1, 6), uuid.UUID("8f14e45f-ceea-167a-5a36-dedd4bea2543"))
    text = "select id, price from kinds where id = %s and price = %s and name like %s and day = %s and u = %s"
    for _ in range(3):
        ask(connection, text, values, prepare=True)
        ask(connection, text, values, prepare=True, binary=True)
    ask(connection, "select id from kinds where id = any(%s) order by id", ([3, 1, None, 2],))
    ask(connection, "select id from kinds where raw = %s and ok = %s", (bytes.fromhex("c81e728d9d4c2f636f067f89cc14862c"), True))
    ask(connection, "select id from kinds where at > %s and f < %s order by id desc limit 2", (datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc), 100.5))
    ask(connection, "select id from kinds where doc @> %s", (Jsonb({"a": 5}),))
    ask(connection, "select %s::interval, %s::text[], %b::int", (datetime.timedelta(days=1, seconds=2), ["a", None, 'b"'], 5))
    ask(connection, "select id from kinds where id = %s", ("seven",))


def in_parts(connection):
    print("== in parts")
    with connection.transaction(), connection.cursor(name="parts") as cursor:
        cursor.execute("select id, name from kinds order by id")
        while rows := cursor.fetchmany(300):
            print(len(rows), rows[0], rows[-1])


def copied(connection):
    print("== copied")
    with connection.cursor() as cursor, cursor.copy("copy (select * from lists order by id) to stdout") as copy:
        for row in copy.rows():
            print(row)


def fails_and_goes_on(connection):
    print("== a transaction that failed")
    try:
        with connection.transaction():
            connection.execute("select 1 / 0")
    except psycopg.Error as error:
        print(told(error), connection.info.transaction_status)
    with connection.transaction(force_rollback=True):
        print(connection.execute("select 41 + 1").fetchone(), connection.info.transaction_status)


def cancelled(connection):
    print("== cancelled")
    threading.Timer(0.3, connection.cancel).start()
    try:
        connection.execute(LONG)
    except psycopg.Error as error:
        print(told(error))
    print(connection.execute("select 41 + 1").fetchone())


with psycopg.connect(autocommit=True) as connection:
    for line in open(sys.argv[1], encoding="utf-8"):
        ask(connection, line.strip())
        ask(connection, line.strip(), binary=True)
    for part in [prepared, in_parts, copied, fails_and_goes_on, cancelled]:
        part(connection)
