//! Keys that are checked at the end, constraints that are not enforced, and commit timestamps: what a load does not have to
//! refuse, as a server asks for no more.

use anyhow::ensure;
use pagemill_testkit::each_of;
use pagemill_testkit::install::{PgInstall, REQUIRED_MAJOR};

use super::twin::{DATABASE, Twin, each_version};

#[test]
fn deferrable_keys_are_kept_to_at_the_end_of_the_load() {
    let definition = "
        CREATE TABLE {t} (a int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, b int UNIQUE DEFERRABLE);";
    each_version(|install| {
        let mut twin = Twin::new(install, definition)?;
        let file = twin.file_of("SELECT i, -i FROM generate_series(1, 3000) i")?;
        twin.load(&file, "", &[])?;
        let said = twin.refusal("ours", b"4000\t1\n4000\t2\n", &[])?;
        ensure!(said.contains("unique constraint \"ours_pkey\""), "{said}");
        let said = twin.refusal("ours", b"4000\t-7\n", &[])?;
        ensure!(said.contains("unique constraint \"ours_b_key\""), "{said}");
        twin.cluster.start()?;
        twin.compare("TABLE {t}")?;
        twin.check()?;
        twin.cluster.psql(DATABASE, "UPDATE ours SET a = a + 1")?;
        twin.check()
    });
}

#[test]
fn constraints_that_are_not_enforced_are_not_asked_and_those_not_validated_are() {
    let Some(install) = PgInstall::find(18) else {
        eprintln!("SKIPPED: PostgreSQL 18 is not installed");
        return;
    };
    let definition = "
        CREATE TABLE {t}_keys (k int PRIMARY KEY);
        CREATE TABLE {t} (a int CHECK (a > 0) NOT ENFORCED, k int REFERENCES {t}_keys NOT ENFORCED);
        CREATE TABLE {t}_later (a int); ALTER TABLE {t}_later ADD CONSTRAINT later CHECK (a > 0) NOT VALID;";
    each_of(&[install], |install| {
        let mut twin = Twin::new(install, definition)?;
        let file = twin.file_of("SELECT -i, i FROM generate_series(1, 10) i")?;
        twin.load(&file, "", &[])?;
        let said = twin.refusal("ours_later", b"-1\n", &[])?;
        ensure!(said.contains("later"), "{said}");
        twin.cluster.start()?;
        twin.compare("TABLE {t}")
    });
}

#[test]
fn the_time_of_the_commit_is_kept_where_the_server_keeps_it() {
    each_version(|install| {
        let mut twin = Twin::new(install, "CREATE TABLE {t} (a int);")?;
        twin.cluster.start()?;
        twin.cluster.psql(DATABASE, "ALTER SYSTEM SET track_commit_timestamp = on")?;
        twin.cluster.stop()?;
        let file = twin.file_of("SELECT 1")?;
        // Past the end of a page of 819 transactions.
        for _ in 0..3 {
            twin.load(&file, "", &[])?;
            twin.cluster.start()?;
            let ask = "SELECT count(*) FROM ours WHERE pg_xact_commit_timestamp(xmin) \
                       BETWEEN now() - interval '10 min' AND now()";
            let rows = "SELECT count(*) FROM ours";
            ensure!(twin.cluster.psql(DATABASE, ask)? == twin.cluster.psql(DATABASE, rows)?);
            twin.cluster.kill()?;
            twin.cluster.start()?;
            ensure!(twin.cluster.psql(DATABASE, ask)? == twin.cluster.psql(DATABASE, rows)?);
            twin.cluster.psql(
                DATABASE,
                "DO $$ BEGIN WHILE txid_current() % 819 <> 818 LOOP COMMIT; END LOOP; END $$",
            )?;
            twin.cluster.stop()?;
        }
        Ok(())
    });
    assert!(PgInstall::find(REQUIRED_MAJOR).is_some());
}
