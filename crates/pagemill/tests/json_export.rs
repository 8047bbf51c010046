//! `export --format json` by the built program: jobs, the order of an index, partitions, chosen columns and several tables give
//! what the server's `row_to_json` gives for the same rows; flags that mean nothing for it are refused.
//!
//! That every type is the server's is proved in `pagemill-engine`.

use std::fs;
use std::process::Output;

use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, Program, TestCluster};

const SETUP: [&str; 6] = [
    "CREATE TABLE t (id int PRIMARY KEY, k text, \"odd \"\"name\" numeric[], gone int, g int GENERATED ALWAYS AS (id * 2) STORED)",
    "INSERT INTO t SELECT n * 7919 % 30011, 'ä' || n, ARRAY[n, NULL], 1 FROM generate_series(1, 20000) n",
    "ALTER TABLE t DROP COLUMN gone",
    "CREATE TABLE parts (id int, at timestamp) PARTITION BY LIST (id)",
    "CREATE TABLE parts_one PARTITION OF parts FOR VALUES IN (1); CREATE TABLE parts_other PARTITION OF parts DEFAULT",
    "INSERT INTO parts SELECT n % 3, '2024-01-01' FROM generate_series(1, 100) n",
];

fn run(cluster: &TestCluster, args: &[&str]) -> Output {
    let args = [&["export", "-d", "postgres", "--format", "json"], args].concat();
    Program::new(env!("CARGO_BIN_EXE_pagemill")).run(&cluster.data_dir(), &args).unwrap()
}

fn asked(cluster: &TestCluster, rows: &str) -> String {
    let copy = format!(
        "COPY (SELECT row_to_json(r) FROM ({rows}) r) TO STDOUT WITH (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')"
    );
    String::from_utf8(cluster.copy_out("postgres", &copy).unwrap()).unwrap()
}

#[test]
fn rows_are_the_servers_in_every_way_to_ask_for_them() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut cluster = empty_cluster(&install).unwrap();
    cluster.start().unwrap();
    for statement in SETUP {
        cluster.psql("postgres", statement).unwrap();
    }
    cluster.psql("postgres", "VACUUM t").unwrap();
    let plain = "SELECT id, k, \"odd \"\"name\" FROM t";
    let table = asked(&cluster, plain);
    let of_parts = asked(&cluster, "SELECT * FROM parts");
    let cases: [(&[&str], String); 6] = [
        (&["-t", "t"], table.clone()),
        (&["-t", "t", "-j", "3"], table.clone()),
        (&["-t", "t", "--order-by", "t_pkey"], asked(&cluster, &format!("{plain} ORDER BY id"))),
        (
            &["-t", "t", "--order-by", "t_pkey", "--columns", "id"],
            asked(&cluster, "SELECT id FROM t ORDER BY id"),
        ),
        (&["-t", "t", "--columns", "g,k"], asked(&cluster, "SELECT g, k FROM t")),
        (&["-t", "parts", "-j", "2"], of_parts.clone()),
    ];
    cluster.stop().unwrap();
    for (args, wanted) in cases {
        let output = run(&cluster, args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == wanted.as_bytes(), "{args:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = format!("{}/", dir.path().display());
    assert!(run(&cluster, &["-t", "t", "-t", "parts", "-o", &path]).status.success());
    assert_eq!(fs::read_to_string(dir.path().join("public.t.jsonl")).unwrap(), table);
    assert_eq!(fs::read_to_string(dir.path().join("public.parts.jsonl")).unwrap(), of_parts);
    for flag in ["--header", "--null=x", "--delimiter=;", "--encoding=LATIN1", "--force-quote=*"] {
        let output = run(&cluster, &["-t", "t", flag]);
        assert_eq!(output.status.code(), Some(2), "{flag}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("means nothing for --format json: leave it out"), "{said}");
    }
}
