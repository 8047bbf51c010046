//! Rows given to partitions: each lies where a server's COPY puts it, and one that belongs nowhere is told as a server tells
//! it.

use anyhow::{Result, ensure};
use pagemill_testkit::install::{PgInstall, REQUIRED_MAJOR};

use super::twin::{DATABASE, Twin, each_version};

/// List over range and hash, defaults, nulls, columns in another order, an unlogged leaf.
const LEVELS: &str = "
    CREATE TABLE {t} (id int NOT NULL, region text, at date, note text) PARTITION BY LIST (region);
    CREATE INDEX ON {t} (at DESC, id);
    CREATE TABLE {t}_north PARTITION OF {t} FOR VALUES IN ('n', 'ne', NULL) PARTITION BY RANGE (at, id);
    CREATE TABLE {t}_old PARTITION OF {t}_north
        FOR VALUES FROM (MINVALUE, MINVALUE) TO ('2020-06-01', 500) WITH (fillfactor = 70);
    CREATE TABLE {t}_new (note text, gone int, at date, region text, id int NOT NULL);
    ALTER TABLE {t}_new DROP COLUMN gone;
    ALTER TABLE {t}_north ATTACH PARTITION {t}_new
        FOR VALUES FROM ('2020-06-01', 500) TO ('2021-01-01', MAXVALUE);
    CREATE UNIQUE INDEX {t}_new_key ON {t}_new (id, at);
    CREATE TABLE {t}_none PARTITION OF {t}_north DEFAULT;
    CREATE TABLE {t}_south PARTITION OF {t} FOR VALUES IN ('s') PARTITION BY HASH (id, note);
    CREATE TABLE {t}_south_0 PARTITION OF {t}_south FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE {t}_south_1 PARTITION OF {t}_south FOR VALUES WITH (MODULUS 4, REMAINDER 1);
    CREATE TABLE {t}_south_3 PARTITION OF {t}_south FOR VALUES WITH (MODULUS 4, REMAINDER 3);
    CREATE UNLOGGED TABLE {t}_rest PARTITION OF {t} DEFAULT;
    CREATE UNIQUE INDEX {t}_rest_key ON {t}_rest (id);";

fn rows(first: u32, last: u32) -> String {
    format!(
        "SELECT i, (ARRAY['n', 'ne', NULL, 's', 'w', 's'])[i % 6 + 1], \
         CASE WHEN i % 11 > 0 THEN date '2019-11-01' + i % 500 END, \
         CASE WHEN i % 40 = 0 THEN (SELECT string_agg(md5((i * 100 + j)::text), '') FROM generate_series(1, 90) j) \
         WHEN i % 7 > 0 THEN 'note ' || i END FROM generate_series({first}, {last}) i"
    )
}

#[test]
fn rows_go_to_the_partitions_that_a_server_gives_them_to() {
    each_version(|install| {
        for flags in [&[][..], &["--no-wal", "-j", "1"], &["--truncate"]] {
            let mut twin = Twin::new(install, LEVELS)?;
            for (first, last) in [(1, 30_000), (30_001, 31_000)] {
                let file = twin.file_of(&rows(first, last))?;
                twin.load(&file, "", flags)?;
            }
            twin.cluster.start()?;
            // A server puts a short row back on a page that a long one left, so its rows are not in the file's order.
            twin.compare(
                "SELECT tableoid::regclass, * FROM {t} ORDER BY tableoid::regclass::text, id",
            )?;
            let swapped = "SELECT count(*) FROM (SELECT id, lag(id) OVER (PARTITION BY tableoid ORDER BY ctid) AS before \
                           FROM ours) o WHERE before > id";
            let swapped = twin.cluster.psql(DATABASE, swapped)?;
            ensure!(swapped == "0", "{swapped} rows are not in the order of the file");
            twin.check()?;
            let blocks = "SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relname ~ '^{t}' AND relkind = 'r'";
            let size = |name| -> Result<u64> {
                Ok(twin.cluster.psql(DATABASE, &blocks.replace("{t}", name))?.parse()?)
            };
            let (ours, theirs) = (size("ours")?, size("theirs")?);
            ensure!(ours <= theirs * 11 / 10 + 100_000, "{ours} bytes, a server's {theirs}");
            let more = "INSERT INTO ours SELECT * FROM theirs WHERE tableoid NOT IN ('theirs_new'::regclass, 'theirs_rest'::regclass)";
            twin.cluster.psql(DATABASE, more)?;
            twin.cluster.psql(DATABASE, "VACUUM ours")?;
            twin.check()?;
        }
        Ok(())
    });
}

#[test]
fn rows_are_hashed_as_a_server_hashes_values_of_every_type() {
    let types = [
        ("int2", "(i % 60000 - 30000)::int2"),
        ("int4", "i * 100003 - 40000000"),
        ("int8", "(i - 500)::int8 * 10000000019"),
        ("oid", "(i::int8 * 2000003)::oid"),
        ("text", "repeat('ab', i % 17) || i"),
        ("varchar(40)", "'v' || i"),
        ("char(9)", "i % 3000"),
        ("bytea", "decode(md5(i::text), 'hex')"),
        ("uuid", "md5(i::text)::uuid"),
        ("date", "date '1990-01-01' + i * 3"),
        ("time", "time '00:00' + i * interval '7.000001 s'"),
        ("timestamp", "timestamp '1999-12-31' + (i - 500) * interval '1 hour 1 us'"),
        ("timestamptz", "timestamptz '1999-12-31 00:00+00' + (i - 500) * interval '1 hour 1 us'"),
        ("bool", "i % 2 = 0"),
        ("\"char\"", "chr(33 + i % 90)::\"char\""),
        ("mood", "(ARRAY['sad', 'ok', 'glad']::mood[])[i % 3 + 1]"),
    ];
    each_version(|install| {
        let definition: Vec<_> = (0..types.len())
            .map(|n| {
                let of = types[n].0;
                let leaves = (0..5).map(|r| {
                    format!("CREATE TABLE {{t}}_{n}_{r} PARTITION OF {{t}}_{n} FOR VALUES WITH (MODULUS 5, REMAINDER {r});")
                });
                format!(
                    "CREATE TABLE {{t}}_{n} (a {of}, b int) PARTITION BY HASH (a, b); {}",
                    leaves.collect::<String>()
                )
            })
            .collect();
        let mood = "DO $$ BEGIN CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad'); EXCEPTION WHEN duplicate_object THEN NULL; END $$;";
        let mut twin = Twin::new(install, &format!("{mood} {}", definition.concat()))?;
        for (n, (_, value)) in types.iter().enumerate() {
            let file = twin.file_of(&format!(
                "SELECT CASE WHEN i % 9 > 0 THEN {value} END, nullif(i % 4, 3) FROM generate_series(1, 1000) i"
            ))?;
            let output = twin.try_load(&format!("ours_{n}"), &file, &[])?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            twin.cluster.start()?;
            let copy = format!("\\copy theirs_{n} FROM '{}'", file.display());
            twin.cluster.psql_bytes(DATABASE, &["-c", &copy])?;
            twin.compare(&format!("SELECT tableoid::regclass, * FROM {{t}}_{n}"))?;
            twin.cluster.stop()?;
        }
        Ok(())
    });
}

#[test]
fn values_at_the_ends_of_ranges_are_compared_as_the_operator_class_and_collation_say() {
    let definition = "
        CREATE TABLE {t} (a text COLLATE \"C\", b numeric, c timestamptz) PARTITION BY RANGE (a, b DESC_OR_NOT, c);
        CREATE TABLE {t}_1 PARTITION OF {t} FOR VALUES FROM ('A', MINVALUE, MINVALUE) TO ('a', 1.50, '2020-01-01');
        CREATE TABLE {t}_2 PARTITION OF {t} FOR VALUES FROM ('a', 1.5, '2020-01-01') TO ('a', 'NaN', MINVALUE);
        CREATE TABLE {t}_3 PARTITION OF {t} FOR VALUES FROM ('é', 0, MINVALUE) TO (MAXVALUE, MAXVALUE, MAXVALUE);
        CREATE TABLE {t}_4 PARTITION OF {t} DEFAULT;";
    each_version(|install| {
        let mut twin = Twin::new(install, &definition.replace(" DESC_OR_NOT", ""))?;
        let file = twin.file_of(
            "SELECT a, b, c FROM unnest(ARRAY['', 'A', 'Z', 'a', 'aa', 'z', 'é', 'É', '日', NULL]) a, \
             unnest(ARRAY[-1, 0, 1.5, 1.50000, 1.51, 'NaN', NULL]::numeric[]) b, \
             unnest(ARRAY['2019-12-31 23:59:59.999999+00', '2020-01-01 00:00+00', '-infinity', 'infinity']::timestamptz[]) c",
        )?;
        twin.load(&file, "", &[])?;
        twin.cluster.start()?;
        twin.compare("SELECT tableoid::regclass, * FROM {t}")
    });
}

#[test]
fn a_leaf_and_a_level_between_take_only_their_rows() {
    each_version(|install| {
        let mut twin = Twin::new(install, LEVELS)?;
        let good = b"500\tne\t2020-06-01\tx\n501\tn\t2020-12-31\ty\n";
        for table in ["ours_north", "ours_new"] {
            // A leaf that is the target has its own order of columns.
            let flags = ["--columns", "id,region,at,note", "--truncate"];
            let output = twin.try_load(table, &twin.file(good)?, &flags)?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let columns = ["--columns", "id,region,at,note"];
        for (table, row) in [
            ("ours_new", "499\tn\t2020-06-01\tx\n"),
            ("ours_new", "600\ts\t2020-07-01\tx\n"),
            ("ours_new", "600\tn\t2021-01-02\tx\n"),
            ("ours_none", "600\tn\t2020-07-01\tx\n"),
            ("ours_rest", "1\ts\t2020-07-01\tx\n"),
            ("ours_south_0", "1\tn\t2020-07-01\tx\n"),
            ("ours_north", "1\ts\t2020-07-01\tx\n"),
        ] {
            let said = twin.refusal(table, row.as_bytes(), &columns)?;
            let told = format!("new row for relation \"{table}\" violates partition constraint");
            ensure!(said.contains(&told), "{said}");
        }
        twin.cluster.start()?;
        let found = twin
            .cluster
            .psql(DATABASE, "SELECT count(*), min(tableoid::regclass::text) FROM ours")?;
        ensure!(found == "2|ours_new", "{found}");
        twin.check()
    });
}

#[test]
fn a_row_without_a_partition_is_told_as_a_server_tells_it() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let definition = "
        CREATE TABLE {t} (a int, \"B b\" text) PARTITION BY RANGE (a, \"B b\");
        CREATE TABLE {t}_1 PARTITION OF {t} FOR VALUES FROM (0, 'a') TO (9, 'c') PARTITION BY LIST (\"B b\");
        CREATE TABLE {t}_2 PARTITION OF {t}_1 FOR VALUES IN ('x');
        CREATE TABLE {t}_by_sum (a int) PARTITION BY RANGE ((a + 1));
        CREATE FOREIGN DATA WRAPPER {t}_w; CREATE SERVER {t}_s FOREIGN DATA WRAPPER {t}_w;
        CREATE TABLE {t}_mixed (a int) PARTITION BY LIST (a);
        CREATE TABLE {t}_mixed_1 PARTITION OF {t}_mixed FOR VALUES IN (1);
        CREATE FOREIGN TABLE {t}_mixed_2 PARTITION OF {t}_mixed FOR VALUES IN (2) SERVER {t}_s;";
    let twin = Twin::new(&install, definition).unwrap();
    for (table, rows, told) in [
        (
            "ours",
            "1\tx\n10\t\\N\n",
            "no partition of relation \"ours\" found for row\nDETAIL:  Partition key of the failing row contains (a, \"B b\") = (10, null).",
        ),
        (
            "ours",
            "1\ty\n",
            "no partition of relation \"ours_1\" found for row\nDETAIL:  Partition key of the failing row contains (\"B b\") = (y).",
        ),
        (
            "ours_by_sum",
            "1\n",
            "its partition key has an expression, which only a server can evaluate",
        ),
        ("ours_mixed", "1\n2\n", "the row belongs to the foreign table \"ours_mixed_2\""),
    ] {
        let said = twin.refusal(table, rows.as_bytes(), &[]).unwrap();
        assert!(said.contains(told), "{said}");
    }
    let loaded = twin.try_load("ours_mixed", &twin.file(b"1\n").unwrap(), &[]).unwrap();
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
}

/// A partition has its columns in its own order, and checks of its own; a server shows the row that fails as it came to
/// the table above.
#[test]
fn what_a_partition_does_not_take_is_told_as_a_server_tells_it() {
    let definition = "
        CREATE TABLE {t} (a int, b text, c int CHECK (c < 100)) PARTITION BY LIST (a);
        CREATE TABLE {t}_1 (c int NOT NULL CHECK (c > 0), gone int, b text, a int);
        ALTER TABLE {t}_1 DROP COLUMN gone, ADD CONSTRAINT {t}_c_check CHECK (c < 100);
        ALTER TABLE {t} ATTACH PARTITION {t}_1 FOR VALUES IN (1);
        ALTER TABLE {t}_1 ADD CONSTRAINT late CHECK (b <> 'late') NOT VALID;
        CREATE TABLE {t}_2 PARTITION OF {t} (b NOT NULL) FOR VALUES IN (2) PARTITION BY RANGE (b, c);
        CREATE TABLE {t}_3 PARTITION OF {t}_2 FOR VALUES FROM ('a', 1) TO ('m', 9);";
    let long = format!("1\t{}\t0\n", "é".repeat(40));
    let nowhere = format!("2\t{}\t7\n", "z".repeat(70));
    let rows = [
        ("", "1\tx\t0\n"),
        ("", "1\tx\t100\n"),
        ("", "1\tlate\t5\n"),
        ("", "1\tx\t\\N\n"),
        ("", long.as_str()),
        ("", "3\tx\t1\n"),
        ("", "\\N\tx\t1\n"),
        ("", nowhere.as_str()),
        ("", "2\ta\t0\n"),
        ("", "2\t\\N\t0\n"),
        ("_1", "0\tx\t1\n"),
        ("_1", "5\tx\t2\n"),
        ("_2", "5\tx\t1\n"),
        ("_2", "b\t2\t500\n"),
        ("_3", "2\tn\t5\n"),
    ];
    each_version(|install| {
        let mut twin = Twin::new(install, definition)?;
        let told = |said: &str| {
            let lines = said.lines().filter(|line| !line.starts_with("CONTEXT:"));
            let last = lines.map(|line| line.split_once("ERROR:  ").map_or(line, |(_, told)| told));
            last.collect::<Vec<_>>().join("\n")
        };
        let mut ours = Vec::new();
        for (table, row) in rows {
            let said = twin.refusal(&format!("ours{table}"), row.as_bytes(), &[])?;
            ours.push(told(&said));
        }
        twin.cluster.start()?;
        for ((table, row), ours) in rows.iter().zip(ours) {
            let copy =
                format!("\\copy theirs{table} FROM '{}'", twin.file(row.as_bytes())?.display());
            let output = twin.cluster.psql_command(DATABASE).args(["-c", &copy]).output()?;
            let theirs = told(&String::from_utf8_lossy(&output.stderr)).replace("theirs", "ours");
            ensure!(!output.status.success() && ours.ends_with(&theirs), "{row}{ours}\n{theirs}");
        }
        Ok(())
    });
}

#[test]
fn a_key_that_is_there_twice_in_one_leaf_undoes_all() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut twin = Twin::new(&install, LEVELS).unwrap();
    let said = twin
        .refusal("ours", b"1\ts\t2020-01-01\ta\n2\tw\t2020-01-01\tb\n2\tw\t2020-01-02\tc\n", &[])
        .unwrap();
    assert!(
        said.contains("duplicate key value violates unique constraint \"ours_rest_key\""),
        "{said}"
    );
    twin.cluster.start().unwrap();
    assert_eq!(twin.cluster.psql(DATABASE, "SELECT count(*) FROM ours").unwrap(), "0");
}

#[test]
fn hundreds_of_partitions_are_filled_side_by_side() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let definition = "
        CREATE TABLE {t} (a int PRIMARY KEY, b text) PARTITION BY LIST (a);
        DO $$ BEGIN FOR i IN 0..299 LOOP
            EXECUTE format('CREATE TABLE {t}_%s (a int NOT NULL, b text)', i);
            EXECUTE format('ALTER TABLE {t} ATTACH PARTITION {t}_%s FOR VALUES IN (%s)', i, i);
        END LOOP; END $$;";
    let definition = definition.replace("(a int PRIMARY KEY, b text)", "(a int NOT NULL, b text)");
    let mut twin = Twin::new(&install, &definition).unwrap();
    let file = twin
        .file_of(
            "SELECT i % 290, 'row ' || i || repeat('x', i % 30) FROM generate_series(1, 60000) i",
        )
        .unwrap();
    twin.load(&file, "", &["--freeze"]).unwrap();
    twin.cluster.start().unwrap();
    twin.compare("SELECT tableoid::regclass, * FROM {t}").unwrap();
    twin.check().unwrap();
}
