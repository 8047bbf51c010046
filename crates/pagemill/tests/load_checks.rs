//! `pagemill load` into domains and tables with CHECK constraints: what a server takes is taken, what it refuses is
//! refused in its words, lines of detail and context included. Of what has to be evaluated for it nothing is written
//! down here: the server says what is right.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::install::PgInstall;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{Program, TestCluster, each_of};

const DATABASE: &str = "postgres";

const TYPES: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
    CREATE DOMAIN positive AS int CONSTRAINT is_positive CHECK (VALUE > 0);
    CREATE DOMAIN small_positive AS positive CONSTRAINT is_small CHECK (VALUE < 100) CONSTRAINT is_even CHECK (VALUE % 2 = 0);
    CREATE DOMAIN filled AS text NOT NULL CHECK (btrim(VALUE) <> '' AND length(VALUE) <= 5);
    CREATE DOMAIN there AS int CHECK (VALUE IS NOT NULL);
    CREATE DOMAIN price AS numeric(8,2) CHECK (VALUE >= 0 AND VALUE < 1000::bigint);
    CREATE DOMAIN code AS varchar(8) CHECK (VALUE IN ('a', 'bc', 'é') OR VALUE LIKE 'x_%y');
    CREATE DOMAIN mail AS text CHECK (VALUE ~ '^[^@ ]+@[^@ ]+\\.[a-z]{2,}$');
    CREATE DOMAIN zip AS char(6) CHECK (VALUE ~ '^[0-9]{5}' AND VALUE NOT LIKE '0%');
    CREATE DOMAIN feeling AS mood CHECK (VALUE > 'sad');
    CREATE DOMAIN digits AS int[] CHECK (VALUE = '{1,2}' OR VALUE < '{0}' OR VALUE IS NULL);
    CREATE DOMAIN span AS int4range CHECK (VALUE <> 'empty' AND VALUE > '[1,2)');
    CREATE DOMAIN ratio AS float8 CHECK (VALUE BETWEEN 0 AND 1);
    CREATE DOMAIN day AS date CHECK (VALUE >= '2000-01-01' AND VALUE NOT IN ('2000-02-29', 'infinity'));
    CREATE DOMAIN truth AS bool CHECK (VALUE IS NOT FALSE);
    CREATE DOMAIN never_null AS text CHECK (coalesce(VALUE, 'no') <> 'no');
    CREATE DOMAIN sized AS bytea CHECK (octet_length(VALUE) = 2);
    CREATE TYPE pair AS (a positive, b filled);
    ";

/// Columns and constraints of a table, and the rows that are tried, one by one.
const CASES: &[(&str, &[&str])] = &[
    ("a positive", &["1", "0", "-1", "\\N", "x"]),
    ("a small_positive", &["2", "0", "-2", "101", "100", "98", "3", "\\N"]),
    ("a filled", &["a", "", "   ", "ééééé", "éééééé", "\\N"]),
    ("a there", &["1", "\\N"]),
    ("a price", &["0", "999.99", "999.995", "1000", "-0.01", "NaN", "\\N"]),
    ("a code", &["a", "bc", "é", "xy", "xay", "xéay", "xaz", "A", ""]),
    ("a mail", &["a@b.de", "a b@c.de", "a@b", "@b.de", "a@b.c.de", "é@b.de"]),
    ("a zip", &["12345", "01234", "1234", "1234x", "123456"]),
    ("a feeling", &["sad", "ok", "happy", "\\N"]),
    ("a digits", &["{1,2}", "{1,3}", "{-5}", "{NULL}", "{}", "\\N"]),
    ("a span", &["empty", "[1,2)", "[1,3)", "[0,9)", "(,)", "[2,)"]),
    ("a ratio", &["0", "-0", "1", "1.0000001", "NaN", "-1e-300"]),
    ("a day", &["1999-12-31", "2000-01-01", "2000-02-29", "infinity", "-infinity"]),
    ("a truth", &["t", "f", "\\N"]),
    ("a never_null", &["no", "yes", "\\N"]),
    ("a sized", &["\\\\x0102", "\\\\x01", "\\N"]),
    ("a positive[]", &["{1,2}", "{1,0}", "{NULL}", "{}"]),
    ("a pair", &["(1,x)", "(0,x)", "(1,)", "(,x)", "(1,\"      \")"]),
    ("a int NOT NULL, b text, c int", &["1\tx\t2", "\\N\tx\t2", "\\N\t\\N\t\\N"]),
    (
        "a int, b int, CHECK (a < b), CONSTRAINT sum CHECK (a + b <= 10), CHECK (a * 1000 <> 7000)",
        &[
            "1\t2",
            "2\t1",
            "5\t6",
            "7\t\\N",
            "\\N\t99",
            "2147483647\t2147483647",
            "2000000000\t2000000001",
        ],
    ),
    (
        "a text COLLATE \"C\" CHECK (a >= 'b' AND a < 'x'), b text, CHECK (b IS NULL OR a IS DISTINCT FROM b)",
        &["c\td", "a\td", "B\td", "x\t\\N", "c\tc", "c\t\\N", "\\N\tq"],
    ),
    (
        "gone int, a numeric CHECK (CASE WHEN a > 5 THEN a < 10 WHEN a = 0 THEN false ELSE true END), b timestamptz",
        &[
            "6\t2020-01-01 00:00:00+00",
            "11\t2020-01-01 00:00:00+00",
            "0\t\\N",
            "-1\t\\N",
            "\\N\t\\N",
        ],
    ),
    (
        "a text CHECK (length(a) < 70), b bytea, c int[], d date",
        &[
            "éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé\t\\\\x00ff\t{1,NULL}\t2020-02-29",
            "short\t\\N\t\\N\t\\N",
        ],
    ),
    ("a bpchar(4) CHECK (a = 'x' AND length(a) = 1 AND a NOT IN ('y'))", &["x", "x ", "xx", "y"]),
    (
        "a int CHECK (a = ANY ('{1,2,NULL}')), b int CHECK (b <> ALL ('{3,4}'))",
        &["1\t1", "3\t1", "1\t3", "\\N\t4"],
    ),
    ("a smallint CHECK (a / 0 = 1)", &["1", "\\N"]),
    ("a jsonb CHECK (a <> '{}' AND a > '1')", &["{}", "1", "2", "[]", "{\"a\": 1}", "\"x\""]),
];

/// What a server says about a row that it refuses, without the label; nothing for one that it takes.
fn server_answers(cluster: &TestCluster, dir: &Path) -> Result<Vec<Vec<Option<String>>>> {
    let mut script = String::from("\\set ON_ERROR_STOP off\n");
    for (case, (_, rows)) in CASES.iter().enumerate() {
        for (row, text) in rows.iter().enumerate() {
            writeln!(script, "\\warn @@ {case} {row} @@\nCOPY t{case} FROM STDIN;\n{text}\n\\.")?;
        }
    }
    let file = dir.join("script.sql");
    fs::write(&file, script)?;
    let output = cluster.psql_command(DATABASE).arg("-f").arg(&file).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut blocks = said.split("@@ ").skip(1);
    let mut answers = Vec::new();
    for (_, rows) in CASES {
        let answer = |_: &&str| {
            let block = blocks.next().context("the server said nothing")?;
            let (_, said) = block.split_once(" @@\n").context("a marker without an end")?;
            Ok(said.split_once("ERROR:  ").map(|(_, message)| message.to_owned()))
        };
        answers.push(rows.iter().map(answer).collect::<Result<_>>()?);
    }
    Ok(answers)
}

fn load(cluster: &TestCluster, table: &str, file: &Path) -> Result<Option<String>> {
    let path = file.to_str().context("a path that is no UTF-8")?;
    let args = ["load", "-d", DATABASE, "-t", table, path];
    let output = Program::new(env!("CARGO_BIN_EXE_pagemill")).run(&cluster.data_dir(), &args)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return Ok(None);
    }
    let prefix = format!("pagemill: {path}: ");
    Ok(Some(said.strip_prefix(&prefix).unwrap_or(&said).to_owned()))
}

/// Domains with CHECK, and tables with CHECK, were refused as a whole; and a row that violates a constraint was told
/// without the row itself.
#[test]
fn checks_are_made_as_a_server_makes_them_and_told_in_its_words() {
    each_of(&PgInstall::all(), |install| {
        let mut cluster = empty_cluster(install)?;
        cluster.start()?;
        cluster.psql(DATABASE, TYPES)?;
        let mut tables = String::new();
        for (case, (columns, _)) in CASES.iter().enumerate() {
            writeln!(tables, "CREATE TABLE t{case} ({columns});")?;
            if columns.starts_with("gone") {
                writeln!(tables, "ALTER TABLE t{case} DROP COLUMN gone;")?;
            }
        }
        cluster.psql(DATABASE, &tables)?;
        let dir = tempfile::tempdir()?;
        let answers = server_answers(&cluster, dir.path())?;
        let mut taken = Vec::new();
        for case in 0..CASES.len() {
            let query = format!("COPY t{case} TO STDOUT");
            taken.push(cluster.copy_out(DATABASE, &query)?);
            cluster.psql(DATABASE, &format!("TRUNCATE t{case}"))?;
        }
        cluster.stop()?;
        let file = dir.path().join("rows");
        let mut wrong = Vec::new();
        for (case, (columns, rows)) in CASES.iter().enumerate() {
            let table = format!("t{case}");
            fs::write(&file, &taken[case])?;
            if let Some(said) = load(&cluster, &table, &file)? {
                wrong.push(format!("{columns}: rows that the server took: {said}"));
                continue;
            }
            for (row, answer) in rows.iter().zip(&answers[case]).filter(|(_, a)| a.is_some()) {
                fs::write(&file, format!("{row}\n"))?;
                let said = load(&cluster, &table, &file)?;
                if said != *answer {
                    wrong.push(format!(
                        "{columns}: {row:?}\n  here   {said:?}\n  server {answer:?}"
                    ));
                }
            }
        }
        ensure!(wrong.is_empty(), "{}:\n{}", install.major, wrong.join("\n"));
        cluster.start()?;
        for (case, taken) in taken.iter().enumerate() {
            let loaded = cluster.copy_out(DATABASE, &format!("COPY t{case} TO STDOUT"))?;
            ensure!(loaded == *taken, "t{case}: other rows than the server's");
        }
        Ok(())
    });
}

#[test]
fn a_check_that_only_a_server_can_make_is_refused_with_its_name_and_the_reason() {
    each_of(&PgInstall::all(), |install| {
        let mut cluster = empty_cluster(install)?;
        cluster.start()?;
        let cases = [
            ("CHECK (abs(a) > 1)", "calls the function abs"),
            ("CHECK (b ~ '\\d')", "matches the pattern \"\\\\d\""),
            ("CHECK (b ~* 'x')", "uses the operator ~*"),
            ("CHECK (t.* IS NOT NULL)", "asks whether a row is null"),
            ("CHECK (t.* <> ROW(1, 'x', now()))", "whole row"),
            ("CHECK (b LIKE b)", "a pattern that is no constant"),
            ("CHECK (a > 0 AND lower(b) = b)", "calls the function lower"),
            ("CHECK (c > now())", "calls the function now"),
            ("CHECK (c > '2000-01-01'::date)", "uses the operator >"),
            ("CHECK (a = ANY (ARRAY[length(b), 1]) AND b = 'x'::name)", "uses the operator ="),
        ];
        let mut script = String::new();
        for (case, (check, _)) in cases.iter().enumerate() {
            let check = check.replace("t.*", &format!("t{case}.*"));
            writeln!(
                script,
                "CREATE TABLE t{case} (a int, b text, c timestamptz, CONSTRAINT odd {check});"
            )?;
        }
        cluster.psql(DATABASE, &script)?;
        cluster.stop()?;
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("rows");
        fs::write(&file, "1\tx\t2020-01-01\n")?;
        for (case, (_, reason)) in cases.iter().enumerate() {
            let said = load(&cluster, &format!("t{case}"), &file)?.unwrap_or_default();
            ensure!(
                said.contains("the check constraint odd of it cannot be checked")
                    && said.contains(reason),
                "{reason}: {said}"
            );
        }
        Ok(())
    });
}
