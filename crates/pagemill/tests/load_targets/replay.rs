//! A server that has only the WAL of such loads, and is then promoted: what a recovery of a load that was cut short after its
//! decision does.

use std::fs;
use std::io::Write as _;

use anyhow::ensure;
use pagemill_testkit::Medium;
use pagemill_testkit::scratch::cluster_root;

use super::twin::{DATABASE, Twin, each_version};

const DEFINITION: &str = "
    CREATE TABLE {t} (id serial, a int, b text DEFAULT 'd') PARTITION BY RANGE (a);
    CREATE INDEX ON {t} (a);
    CREATE TABLE {t}_1 PARTITION OF {t} FOR VALUES FROM (MINVALUE) TO (1000);
    CREATE TABLE {t}_2 (b text, id int NOT NULL, a int);
    ALTER TABLE {t} ATTACH PARTITION {t}_2 FOR VALUES FROM (1000) TO (9000);
    INSERT INTO {t} (a) SELECT i FROM generate_series(1, 500) i;
    CREATE UNLOGGED TABLE {t}_gone (id serial PRIMARY KEY, a int, b text);
    INSERT INTO {t}_gone (a, b) VALUES (1, 'x');";

#[test]
fn a_server_with_the_wal_alone_has_partitions_sequences_and_times_and_an_unlogged_table_that_is_empty()
 {
    each_version(|install| {
        let mut twin = Twin::new(install, DEFINITION)?;
        twin.cluster.start()?;
        twin.cluster.psql(DATABASE, "ALTER SYSTEM SET track_commit_timestamp = on")?;
        twin.cluster.stop()?;
        let rows: String = (1..4000).map(|i| format!("{i}\n")).collect();
        let file = twin.file(rows.as_bytes())?;
        // The next transaction begins a page of commit timestamps.
        twin.cluster.start()?;
        twin.cluster.psql(
            DATABASE,
            "DO $$ BEGIN WHILE txid_current() % 819 <> 818 LOOP COMMIT; END LOOP; END $$",
        )?;
        twin.cluster.stop()?;
        let mut follower = twin.cluster.copy_to(&cluster_root(Medium::Memory)?)?;
        let wal = twin.cluster.data_dir().join("pg_wal");
        let conf = follower.data_dir().join("postgresql.conf");
        let mut settings = fs::OpenOptions::new().append(true).open(conf)?;
        writeln!(settings, "\nrestore_command = 'cp {}/%f %p'", wal.display())?;
        fs::write(follower.data_dir().join("recovery.signal"), "")?;
        for table in ["ours", "ours_gone"] {
            let output = twin.try_load(table, &file, &["--columns", "a"])?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        follower.start()?;
        while follower.psql(DATABASE, "SELECT pg_is_in_recovery()")? != "f" {
            std::thread::yield_now();
        }
        let found = follower.psql(
            DATABASE,
            "SELECT (SELECT count(*) FROM ours_1), (SELECT count(*) FROM ours_2), (SELECT count(*) FROM ours_gone), \
             nextval('ours_id_seq'), (SELECT count(*) FROM ours_2 WHERE b = 'd' AND id = a + 500 \
             AND pg_xact_commit_timestamp(xmin) BETWEEN now() - interval '10 min' AND now())",
        )?;
        ensure!(found == "1499|3000|0|4500|3000", "{found}");
        follower.psql(DATABASE, "INSERT INTO ours_gone (a, b) VALUES (1, 'y')")?;
        let twin = Twin { cluster: follower, ..twin };
        twin.check()
    });
}
