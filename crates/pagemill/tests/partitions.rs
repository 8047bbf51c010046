//! The order of a partitioned table's rows: that in which a server of each version scans the partitions. The judge is
//! `COPY (SELECT …) TO`; partitions are made in another order than that of their bounds.

use std::fs;

use anyhow::{Result, ensure};
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{CopyFormat, PgInstall, Program, TestCluster, compare, each_of};

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

/// Tables whose partitions were made in another order than that of their bounds.
const TABLES: &str = "
CREATE TABLE lists (a int, b text) PARTITION BY LIST (a);
CREATE TABLE lists_rest PARTITION OF lists DEFAULT;
CREATE TABLE lists_null PARTITION OF lists FOR VALUES IN (NULL);
CREATE TABLE lists_9 PARTITION OF lists FOR VALUES IN (9, 100);
CREATE TABLE lists_neg PARTITION OF lists FOR VALUES IN (50, -3);
CREATE TABLE lists_10 PARTITION OF lists FOR VALUES IN (10, 2);
INSERT INTO lists SELECT NULLIF(i % 120 - 10, 0), i FROM generate_series(1, 500) i;

CREATE TABLE nulls (a numeric) PARTITION BY LIST (a);
CREATE TABLE nulls_b PARTITION OF nulls FOR VALUES IN (10.5, NULL);
CREATE TABLE nulls_c PARTITION OF nulls FOR VALUES IN (100);
CREATE TABLE nulls_a PARTITION OF nulls FOR VALUES IN (9, 1000);
INSERT INTO nulls VALUES (1000), (9), (NULL), (100), (10.50);

CREATE TYPE size AS ENUM ('small', 'large');
ALTER TYPE size ADD VALUE 'medium' BEFORE 'large';
CREATE TABLE sizes (s size) PARTITION BY LIST (s);
CREATE TABLE sizes_l PARTITION OF sizes FOR VALUES IN ('large');
CREATE TABLE sizes_m PARTITION OF sizes FOR VALUES IN ('medium');
CREATE TABLE sizes_s PARTITION OF sizes FOR VALUES IN ('small');
INSERT INTO sizes VALUES ('large'), ('small'), ('medium');

CREATE TABLE flags (f bool) PARTITION BY LIST (f);
CREATE TABLE flags_t PARTITION OF flags FOR VALUES IN (true);
CREATE TABLE flags_f PARTITION OF flags FOR VALUES IN (false);
INSERT INTO flags VALUES (true), (false);

CREATE TABLE words (w text COLLATE \"C\") PARTITION BY RANGE (w);
CREATE TABLE words_z PARTITION OF words FOR VALUES FROM ('a') TO (MAXVALUE);
CREATE TABLE words_m PARTITION OF words FOR VALUES FROM ('Z') TO ('a');
CREATE TABLE words_a PARTITION OF words FOR VALUES FROM (MINVALUE) TO ('Z');
INSERT INTO words VALUES ('zoo'), ('Zoo'), ('Apple'), ('apple'), ('');

CREATE TABLE local (w varchar(9) COLLATE \"C.utf8\") PARTITION BY LIST (w);
CREATE TABLE local_1 PARTITION OF local FOR VALUES IN ('b');
CREATE TABLE local_2 PARTITION OF local FOR VALUES IN ('B');
CREATE TABLE local_3 PARTITION OF local FOR VALUES IN ('a', 'Z');
CREATE TABLE local_4 PARTITION OF local FOR VALUES IN ('A');
INSERT INTO local VALUES ('A'), ('Z'), ('a'), ('B'), ('b');

CREATE TABLE patterns (w text) PARTITION BY RANGE (w text_pattern_ops);
CREATE TABLE patterns_2 PARTITION OF patterns FOR VALUES FROM ('a') TO ('b');
CREATE TABLE patterns_1 PARTITION OF patterns FOR VALUES FROM ('A') TO ('a');
INSERT INTO patterns VALUES ('aa'), ('B');

CREATE TABLE days (d timestamptz, n int) PARTITION BY RANGE (d, (n % 10));
CREATE TABLE days_3 PARTITION OF days FOR VALUES FROM ('2000-01-01', 5) TO ('2001-01-01', MINVALUE);
CREATE TABLE days_4 PARTITION OF days FOR VALUES FROM ('2001-01-01', MINVALUE) TO (MAXVALUE, MAXVALUE);
CREATE TABLE days_rest PARTITION OF days DEFAULT;
CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM (MINVALUE, MINVALUE) TO ('1999-01-01', -3);
CREATE TABLE days_2 PARTITION OF days FOR VALUES FROM ('1999-06-01', -8) TO ('2000-01-01', 5);
INSERT INTO days SELECT '1998-01-01'::timestamptz + i * interval '7 days', i FROM generate_series(1, 250) i;

CREATE TABLE hashes (a int) PARTITION BY HASH (a);
CREATE TABLE hashes_8_5 PARTITION OF hashes FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE hashes_8_1 PARTITION OF hashes FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE hashes_4_2 PARTITION OF hashes FOR VALUES WITH (MODULUS 4, REMAINDER 2);
CREATE TABLE hashes_4_0 PARTITION OF hashes FOR VALUES WITH (MODULUS 4, REMAINDER 0);
CREATE TABLE hashes_4_3 PARTITION OF hashes FOR VALUES WITH (MODULUS 4, REMAINDER 3);
INSERT INTO hashes SELECT generate_series(1, 100);

CREATE TABLE nested (a int, t text, n int) PARTITION BY LIST (a);
CREATE TABLE nested_rest PARTITION OF nested DEFAULT PARTITION BY RANGE (n);
CREATE TABLE nested_rest_2 PARTITION OF nested_rest FOR VALUES FROM (50) TO (MAXVALUE);
CREATE TABLE nested_rest_1 PARTITION OF nested_rest FOR VALUES FROM (MINVALUE) TO (50);
CREATE TABLE nested_2 PARTITION OF nested FOR VALUES IN (2) PARTITION BY HASH (t);
CREATE TABLE nested_2_1 PARTITION OF nested_2 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE nested_2_0 PARTITION OF nested_2 FOR VALUES WITH (MODULUS 2, REMAINDER 0) PARTITION BY LIST (n);
CREATE TABLE nested_2_0_rest PARTITION OF nested_2_0 DEFAULT;
CREATE TABLE nested_2_0_7 PARTITION OF nested_2_0 FOR VALUES IN (7, 10, 13, 16, 19, 22);
CREATE TABLE nested_1 PARTITION OF nested FOR VALUES IN (1);
CREATE TABLE nested_gone PARTITION OF nested FOR VALUES IN (3);
CREATE TABLE nested_none PARTITION OF nested FOR VALUES IN (-1) PARTITION BY LIST (n);
INSERT INTO nested SELECT i % 5, i, i FROM generate_series(1, 200) i;
ALTER TABLE nested DETACH PARTITION nested_gone;
";

const NAMES: [&str; 10] =
    ["lists", "nulls", "sizes", "flags", "words", "local", "patterns", "days", "hashes", "nested"];

fn filled(install: &PgInstall, sql: &str) -> Result<TestCluster> {
    let mut cluster = empty_cluster(install)?;
    cluster.start()?;
    let file = cluster.root().join("tables.sql");
    fs::write(&file, sql)?;
    cluster.account().own(&file)?;
    cluster.psql_file("postgres", &file, &[])?;
    Ok(cluster)
}

/// The rows came in the order in which the partitions had been made, and a comparison with the server's had to sort
/// both before.
#[test]
fn partitions_are_exported_in_the_order_in_which_a_server_scans_them() {
    each_of(&PgInstall::all(), |install| {
        let mut cluster = filled(install, TABLES)?;
        let expected: Vec<Vec<u8>> = NAMES
            .iter()
            .map(|name| {
                let copy = format!("COPY (SELECT * FROM {name}) TO STDOUT");
                cluster.copy_out("postgres", &copy)
            })
            .collect::<Result<_>>()?;
        cluster.stop()?;
        for (name, expected) in NAMES.iter().zip(expected) {
            for jobs in ["1", "2"] {
                let args = ["export", "-d", "postgres", "-t", name, "-j", jobs];
                let output = program().run(&cluster.data_dir(), &args)?;
                ensure!(output.stderr.is_empty(), "{name}: {output:?}");
                let same = compare(CopyFormat::Text, &[], &expected, &output.stdout);
                ensure!(same.is_ok(), "{name} -j {jobs}: {same:?}");
            }
        }
        Ok(())
    });
}

/// What is not known is said: a key in the order of ICU, or of values whose order is not implemented.
#[test]
fn partitions_in_an_order_that_is_not_known_are_all_exported_and_it_is_said() {
    const SQL: &str = "
        CREATE COLLATION german (provider = icu, locale = 'de');
        CREATE TABLE g (w text COLLATE german) PARTITION BY LIST (w);
        CREATE TABLE g_2 PARTITION OF g FOR VALUES IN ('z');
        CREATE TABLE g_1 PARTITION OF g FOR VALUES IN ('a');
        INSERT INTO g VALUES ('a'), ('z');
        CREATE TABLE one (w text COLLATE german) PARTITION BY LIST (w);
        CREATE TABLE one_1 PARTITION OF one FOR VALUES IN ('a');
        INSERT INTO one VALUES ('a');";
    let install = PgInstall::find(15).expect("PostgreSQL 15 is needed");
    let mut cluster = filled(&install, SQL).unwrap();
    cluster.stop().unwrap();
    let export = |table| {
        let args = ["export", "-d", "postgres", "-t", table];
        program().run(&cluster.data_dir(), &args).unwrap()
    };
    let output = export("g");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"z\na\n", "{output:?}");
    assert!(said.contains("public.g: its partitions are in the order of their OIDs"), "{said}");
    let output = export("one");
    assert!(output.stdout == b"a\n" && output.stderr.is_empty(), "{output:?}");
}
