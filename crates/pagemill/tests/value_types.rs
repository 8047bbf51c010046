//! Types made by users, in numbers: the catalogs behind them are read once, not once for each, and
//! values of all of them are printed as the server prints them.

use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, Program, TestCluster};

/// Types of each kind.
const TYPES: usize = 20;

fn statements() -> Vec<String> {
    let mut statements = Vec::new();
    for n in 1..=TYPES {
        statements.push(format!("CREATE TYPE pair{n} AS (a int, b text)"));
        statements.push(format!(
            "CREATE TYPE word{n};
             CREATE FUNCTION in{n}(cstring) RETURNS word{n} LANGUAGE internal IMMUTABLE STRICT AS 'textin';
             CREATE FUNCTION out{n}(word{n}) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
             CREATE TYPE word{n} (INPUT = in{n}, OUTPUT = out{n}, LIKE = text)"
        ));
    }
    // As many columns, and the first and the last of the types among them, so that both tables have pg_attribute read as far.
    let columns = |type_of: fn(usize) -> usize| {
        let pair = |n| format!("p{n} pair{0}, w{n} word{0}", type_of(n));
        (1..=TYPES).map(pair).collect::<Vec<_>>().join(", ")
    };
    statements.push(format!("CREATE TABLE few ({})", columns(|n| if n == 1 { 1 } else { TYPES })));
    statements.push(format!("CREATE TABLE many ({})", columns(|n| n)));
    let row = vec!["(1, 'x y'), 'word'"; TYPES].join(", ");
    statements.push(format!("INSERT INTO few VALUES ({row})"));
    statements.push(format!("INSERT INTO many VALUES ({row})"));
    statements
}

/// The rows of a table, and the read calls that exporting it took.
fn exported(cluster: &TestCluster, table: &str) -> (String, u64) {
    let args = ["export", "-d", "postgres", "-t", table, "--stats"];
    let output =
        Program::new(env!("CARGO_BIN_EXE_pagemill")).run(&cluster.data_dir(), &args).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let calls = said.lines().find_map(|line| line.strip_prefix("read_calls")).unwrap();
    (String::from_utf8(output.stdout).unwrap(), calls.trim().parse().unwrap())
}

#[test]
fn many_types_take_no_more_reads_than_few() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut cluster = empty_cluster(&install).unwrap();
    cluster.start().unwrap();
    for statement in statements() {
        cluster.psql("postgres", &statement).unwrap();
    }
    let expected = ["few", "many"]
        .map(|table| cluster.copy_out("postgres", &format!("COPY {table} TO STDOUT")).unwrap());
    cluster.stop().unwrap();
    let (few, calls_for_few) = exported(&cluster, "few");
    let (many, calls_for_many) = exported(&cluster, "many");
    assert_eq!([few.into_bytes(), many.into_bytes()], expected);
    assert_eq!(calls_for_few, calls_for_many);
}
