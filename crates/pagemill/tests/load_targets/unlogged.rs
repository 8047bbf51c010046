//! Tables that a crash empties: their rows are there until then, and they can be used afterwards.
//! Beside each stands a twin that a server filled.

use anyhow::ensure;

use super::twin::{DATABASE, Twin, each_version};

const DEFINITION: &str = "
    CREATE UNLOGGED TABLE {t} (id serial PRIMARY KEY, a int, b text);
    CREATE INDEX ON {t} (a);";
const ROWS: &str = "SELECT i, CASE WHEN i % 20 = 0 THEN \
                    (SELECT string_agg(md5((i * 100 + j)::text), '') FROM generate_series(1, 90) j) ELSE 'x' || i END \
                    FROM generate_series(1, 5000) i";

#[test]
fn an_unlogged_table_has_its_rows_until_a_crash_and_can_be_used_afterwards() {
    each_version(|install| {
        for flags in [&[][..], &["--no-wal"], &["--truncate", "--freeze"]] {
            let mut twin = Twin::new(install, DEFINITION)?;
            let file = twin.file_of(ROWS)?;
            for _ in 0..2 {
                twin.load(&file, "a,b", flags)?;
            }
            twin.cluster.start()?;
            twin.compare("TABLE {t}")?;
            twin.compare("SELECT last_value, is_called FROM {t}_id_seq")?;
            twin.check()?;
            twin.cluster
                .psql(DATABASE, "INSERT INTO ours (a, b) SELECT a, b FROM ours LIMIT 100")?;
            twin.cluster.psql(DATABASE, "VACUUM ours")?;
            twin.check()?;
            twin.cluster.kill()?;
            twin.cluster.start()?;
            let left = twin.cluster.psql(DATABASE, "SELECT count(*) FROM ours")?;
            ensure!(left == "0", "{left} rows after a crash");
            twin.cluster
                .psql(DATABASE, "INSERT INTO ours (a, b) VALUES (1, repeat(md5('x'), 400))")?;
            twin.check()?;
        }
        Ok(())
    });
}
