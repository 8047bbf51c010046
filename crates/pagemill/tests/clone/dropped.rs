//! `pagemill drop`: everything of a database is gone, and what a server would refuse is refused.
//!
//! Held against what a server's own DROP DATABASE leaves in the shared catalogs.

use anyhow::{Result, ensure};
use pagemill_testkit::TestCluster;
use pagemill_testkit::prepared::empty_cluster;

use crate::fixture::{
    PLACED, QUOTED, SHOP, check, check_checksums, contents, database_directories, done, found,
    oid_of, pagemill, required, rich, snapshot,
};

/// What the shared catalogs have of databases that are not there.
const ORPHANS: &str = "
    SELECT 'shdepend', dbid FROM pg_shdepend WHERE dbid <> 0 AND dbid NOT IN (SELECT oid FROM pg_database)
    UNION ALL SELECT 'shdepend of', objid FROM pg_shdepend
        WHERE dbid = 0 AND classid = 1262 AND objid NOT IN (SELECT oid FROM pg_database)
    UNION ALL SELECT 'setting', setdatabase FROM pg_db_role_setting
        WHERE setdatabase <> 0 AND setdatabase NOT IN (SELECT oid FROM pg_database)
    UNION ALL SELECT 'comment', objoid FROM pg_shdescription
        WHERE classoid = 1262 AND objoid NOT IN (SELECT oid FROM pg_database)
    UNION ALL SELECT 'label', objoid FROM pg_shseclabel
        WHERE classoid = 1262 AND objoid NOT IN (SELECT oid FROM pg_database)";

fn refuse(cluster: &TestCluster, database: &str, reason: &str) -> Result<()> {
    let before = snapshot(cluster)?;
    for arguments in [&["drop", database][..], &["drop", "--dry-run", database]] {
        let output = pagemill().run(&cluster.data_dir(), arguments)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success() && said.contains(reason), "{arguments:?}: {said}");
        ensure!(said.lines().count() == 1, "{said}");
    }
    ensure!(snapshot(cluster)? == before, "{database}: something has changed");
    Ok(())
}

fn judge(major: u32) {
    let Some(install) = found(major) else { return };
    let judged = drop_all(&mut rich(
        &install,
        &[
            "ALTER ROLE alice IN DATABASE shop SET work_mem = '3MB'",
            // No provider of labels is at hand: the row is what one would leave.
            "SET allow_system_table_mods = on; INSERT INTO pg_shseclabel \
             SELECT oid, 1262, 'dummy', 'secret' FROM pg_database WHERE datname IN ('shop', 'latin')",
            "VACUUM (FREEZE) pg_database, pg_shdepend, pg_db_role_setting, pg_shdescription, pg_shseclabel",
        ],
    )
    .unwrap());
    judged.unwrap_or_else(|error| panic!("PostgreSQL {major}: {error:?}"));
}

fn drop_all(cluster: &mut TestCluster) -> Result<()> {
    cluster.start()?;
    let shop = oid_of(cluster, SHOP)?;
    let placed = oid_of(cluster, PLACED)?;
    let kept = contents(cluster, QUOTED)?;
    cluster.stop()?;
    let data = cluster.data_dir();
    let directories = database_directories(&data, &placed)?;
    ensure!(directories.len() == 3, "{directories:?}");
    let before = snapshot(cluster)?;
    let told = done(cluster, &["drop", "--dry-run", PLACED])?;
    ensure!(told.lines().count() == 3 && told.contains(&placed), "{told}");
    ensure!(done(cluster, &["drop", "--if-exists", "no such one"])?.contains("does not exist"));
    ensure!(snapshot(cluster)? == before, "--dry-run has changed something");
    for database in [SHOP, PLACED, "postgres"] {
        done(cluster, &["drop", database])?;
    }
    ensure!(database_directories(&data, &shop)?.is_empty(), "directories of shop");
    ensure!(database_directories(&data, &placed)?.is_empty(), "directories of placed");
    check_checksums(cluster)?;
    cluster.start()?;
    let left = cluster.psql(QUOTED, ORPHANS)?;
    ensure!(left.is_empty(), "left: {left}");
    let others = "SELECT count(*) FROM pg_shseclabel";
    ensure!(cluster.psql(QUOTED, others)? == "1", "the label of another database is gone");
    check(cluster, QUOTED)?;
    ensure!(contents(cluster, QUOTED)? == kept, "another database has changed");
    cluster.psql(QUOTED, "CREATE DATABASE shop")?;
    // What depended on them is gone, so nothing holds their roles and tablespaces.
    for sql in [
        "DROP ROLE alice",
        "DROP ROLE bob",
        "DROP TABLESPACE own_space",
        "DROP TABLESPACE outer_space",
    ] {
        cluster.psql(QUOTED, sql)?;
    }
    cluster.psql(QUOTED, "CREATE EXTENSION pg_visibility")?;
    let wrong = "SELECT c.oid::regclass, t FROM pg_class c, pg_check_visible(c.oid) t WHERE relisshared AND relkind = 'r'";
    ensure!(cluster.psql(QUOTED, wrong)?.is_empty(), "said to be visible to all");
    for catalog in ["pg_database", "pg_shdepend", "pg_db_role_setting", "pg_shseclabel"] {
        cluster.psql(QUOTED, &format!("VACUUM {catalog}"))?;
    }
    cluster.kill()?;
    cluster.start()?;
    check(cluster, QUOTED)
}

#[test]
fn everything_of_a_dropped_database_of_14_is_gone() {
    judge(14);
}

#[test]
fn everything_of_a_dropped_database_of_18_is_gone() {
    judge(18);
}

#[test]
fn what_a_server_would_not_drop_is_refused() {
    let mut cluster = empty_cluster(&required()).unwrap();
    let conf = cluster.data_dir().join("postgresql.conf");
    let text = std::fs::read_to_string(&conf).unwrap();
    std::fs::write(conf, text + "\nwal_level = logical\n").unwrap();
    cluster.start().unwrap();
    for name in ["slotted", "subscribed", "plain", "template_of_mine"] {
        cluster.psql("postgres", &format!("CREATE DATABASE {name}")).unwrap();
    }
    let slot = "SELECT pg_create_logical_replication_slot('decoding', 'pgoutput')";
    cluster.psql("slotted", slot).unwrap();
    cluster
        .psql("postgres", "SELECT pg_create_physical_replication_slot('physical', true)")
        .unwrap();
    let subscription = "CREATE SUBSCRIPTION s CONNECTION 'dbname=x' PUBLICATION p \
        WITH (connect = false, slot_name = NONE, enabled = false, create_slot = false)";
    cluster.psql("subscribed", subscription).unwrap();
    cluster.psql("postgres", "ALTER DATABASE template_of_mine IS_TEMPLATE true").unwrap();
    cluster.stop().unwrap();
    refuse(&cluster, "slotted", "logical replication slot \"decoding\"").unwrap();
    refuse(&cluster, "subscribed", "used by 1 subscription").unwrap();
    refuse(&cluster, "template_of_mine", "is a template").unwrap();
    refuse(&cluster, "template0", "is a template").unwrap();
    refuse(&cluster, "plane", "database \"plane\" does not exist: did you mean plain?").unwrap();
    done(&cluster, &["drop", "plain"]).unwrap();
    cluster.start().unwrap();
    cluster.psql("subscribed", "DROP SUBSCRIPTION s").unwrap();
    cluster.psql("slotted", "SELECT pg_drop_replication_slot('decoding')").unwrap();
    cluster.stop().unwrap();
    for name in ["subscribed", "slotted"] {
        done(&cluster, &["drop", name]).unwrap();
    }
}

#[test]
fn a_drop_that_a_server_began_is_finished() {
    for major in [14, 15, 18] {
        let Some(install) = found(major) else { continue };
        let mut cluster = empty_cluster(&install).unwrap();
        cluster.start().unwrap();
        for name in ["broken", "gone"] {
            cluster.psql("postgres", &format!("CREATE DATABASE {name}")).unwrap();
        }
        let (broken, gone) =
            (oid_of(&cluster, "broken").unwrap(), oid_of(&cluster, "gone").unwrap());
        let began = "UPDATE pg_database SET datconnlimit = -2 WHERE datname IN ('broken', 'gone')";
        cluster.psql("postgres", began).unwrap();
        cluster.stop().unwrap();
        let base = cluster.data_dir().join("base");
        std::fs::remove_file(base.join(&broken).join("PG_VERSION")).unwrap();
        std::fs::remove_dir_all(base.join(&gone)).unwrap();
        for name in ["broken", "gone"] {
            done(&cluster, &["drop", name]).unwrap();
        }
        assert!(!base.join(&broken).exists());
        cluster.start().unwrap();
        let left = "SELECT count(*) FROM pg_database WHERE datname IN ('broken', 'gone')";
        assert_eq!(cluster.psql("postgres", left).unwrap(), "0");
        cluster.psql("postgres", "CREATE DATABASE broken").unwrap();
        cluster
            .psql("postgres", "UPDATE pg_database SET datconnlimit = -2 WHERE datname <> 'broken'")
            .unwrap();
        cluster.stop().unwrap();
        // Without a database whose catalogs can be trusted nothing can be changed.
        refuse(&cluster, "broken", "is invalid").unwrap();
    }
}
