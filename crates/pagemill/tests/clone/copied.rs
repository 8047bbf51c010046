//! Databases made by every strategy from databases with every kind of relation: row for row, file for file and catalog
//! row for catalog row what a server's own CREATE DATABASE leaves, and fit for all further work.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::TestCluster;

use crate::fixture::{
    LATIN, PLACED, QUOTED, SHOP, check, check_checksums, clone, contents, done, files, found,
    oid_of, rich,
};

/// With a LATIN1 name, as it is stored.
const CHEESE: &[u8] = b"K\xe4se";

/// Databases that not every server can make; each with its version.
const LOCALES: [(u32, &str, &str); 3] = [
    (
        15,
        "icu",
        "CREATE DATABASE icu LOCALE_PROVIDER icu ICU_LOCALE 'de-u-co-phonebk' LOCALE 'C' TEMPLATE template0",
    ),
    (
        17,
        "builtin",
        "CREATE DATABASE builtin LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' TEMPLATE template0",
    ),
    (14, "plain", "CREATE DATABASE plain LOCALE 'C' ENCODING 'SQL_ASCII' TEMPLATE template0"),
];

/// All that shared catalogs have of a database: its row, what in it depends on roles and tablespaces, its owner, its
/// comment and settings.
const WHAT_IS_SAID: &str = "
    SELECT to_jsonb(d) - 'oid' - 'datname' FROM pg_database d WHERE datname = 'NAME';
    SELECT classid, objid, objsubid, refclassid, refobjid, deptype FROM pg_shdepend
        WHERE dbid = (SELECT oid FROM pg_database WHERE datname = 'NAME') ORDER BY 1, 2, 3, 4, 5, 6;
    SELECT refclassid, refobjid, deptype FROM pg_shdepend WHERE dbid = 0 AND classid = 1262
        AND objid = (SELECT oid FROM pg_database WHERE datname = 'NAME');
    SELECT shobj_description(oid, 'pg_database'), s FROM pg_database d
        LEFT JOIN pg_db_role_setting s ON s.setdatabase = d.oid WHERE datname = 'NAME'";

#[test]
fn databases_of_14_are_copied_as_a_server_copies_them() {
    judge(14);
}

#[test]
fn databases_of_15_are_copied_as_a_server_copies_them() {
    judge(15);
}

#[test]
fn databases_of_16_are_copied_as_a_server_copies_them() {
    judge(16);
}

#[test]
fn databases_of_17_are_copied_as_a_server_copies_them() {
    judge(17);
}

#[test]
fn databases_of_18_are_copied_as_a_server_copies_them() {
    judge(18);
}

fn judge(major: u32) {
    let Some(install) = found(major) else { return };
    let mut cluster = rich(&install, &["VACUUM (FREEZE) pg_database, pg_shdepend"]).unwrap();
    cluster.start().unwrap();
    let locales: Vec<_> = LOCALES.into_iter().filter(|(first, ..)| major >= *first).collect();
    let locales: Vec<_> = locales
        .into_iter()
        .filter(|(_, name, sql)| {
            // A server that was built without ICU.
            let made = cluster.psql("postgres", sql);
            made.as_ref()
                .inspect_err(|why| eprintln!("SKIPPED: {name} on {major}: {why:#}"))
                .is_ok()
        })
        .map(|(_, name, _)| name)
        .collect();
    cluster.stop().unwrap();
    let judged = make_all(&cluster, &locales).and_then(|()| judge_all(&mut cluster, &locales));
    judged.unwrap_or_else(|error| panic!("PostgreSQL {major}: {error:?}"));
}

fn strategies(cluster: &TestCluster) -> &'static [&'static str] {
    if cluster.major() == 14 { &["file_copy"] } else { &["wal_log", "file_copy"] }
}

fn make_all(cluster: &TestCluster, locales: &[&str]) -> Result<()> {
    let begin = checkpoint_location(cluster)?;
    for &strategy in strategies(cluster) {
        let how = ["clone", "--strategy", strategy];
        let owned = ["--owner", "alice", "--connection-limit", "7"];
        done(cluster, &[&how[..], &owned, &[SHOP, &format!("shop_{strategy}")]].concat())?;
        done(cluster, &[&how[..], &[PLACED, &format!("placed_{strategy}")]].concat())?;
        let moved = ["--tablespace", "third_space", SHOP];
        done(cluster, &[&how[..], &moved, &[&format!("moved_{strategy}")]].concat())?;
    }
    done(cluster, &["clone", "--tablespace", "own_space", "--owner=carol", "template0", "fresh"])?;
    done(cluster, &["clone", QUOTED, "ein \"zitiertes\" Öl", "zweites", "drittes"])?;
    done(cluster, &["clone", LATIN, "Käse"])?;
    done(cluster, &["clone", "Käse", "Käserei"])?;
    done(cluster, &["drop", "Käserei"])?;
    let closed = ["--allow-connections=false", "--is-template", "template0", "closed"];
    done(cluster, &[&["clone"], &closed[..]].concat())?;
    for name in locales {
        done(cluster, &["clone", name, &format!("{name}_copy")])?;
    }
    check_waldump(cluster, &begin)
}

fn judge_all(cluster: &mut TestCluster, locales: &[&str]) -> Result<()> {
    check_checksums(cluster)?;
    cluster.start()?;
    check(cluster, "postgres")?;
    let pairs = [("shop", SHOP), ("placed", PLACED), ("moved", SHOP)];
    for (copy, source) in pairs {
        let expected = contents(cluster, source)?;
        ensure!(expected.len() > 100_000, "{source} prints as {} bytes", expected.len());
        for strategy in strategies(cluster) {
            let copy = format!("{copy}_{strategy}");
            ensure!(contents(cluster, &copy)? == expected, "{copy} is not as {source}");
            if source == SHOP {
                check(cluster, &copy)?;
            }
            let (of_copy, of_source) = (oid_of(cluster, &copy)?, oid_of(cluster, source)?);
            let (of_copy, of_source) = (files(cluster, &of_copy)?, files(cluster, &of_source)?);
            ensure!(of_copy == of_source, "{copy}: {of_copy:?}, {source}: {of_source:?}");
        }
    }
    let expected = contents(cluster, QUOTED)?;
    for copy in ["ein \"zitiertes\" Öl", "zweites", "drittes"] {
        ensure!(contents(cluster, copy)? == expected, "{copy}");
    }
    let cheese = std::os::unix::ffi::OsStrExt::from_bytes(CHEESE);
    let cheese: &std::ffi::OsStr = cheese;
    ensure!(contents(cluster, cheese)? == contents(cluster, LATIN)?, "Käse");
    check_dumps(cluster)?;
    check_rows(cluster, locales)?;
    check_visibility(cluster)?;
    work(cluster)?;
    crash(cluster)
}

/// Rows of `pg_database` and `pg_shdepend` as after the server's own commands.
fn check_rows(cluster: &TestCluster, locales: &[&str]) -> Result<()> {
    let quoted = format!("\"{}\"", QUOTED.replace('"', "\"\""));
    let mut made = vec![
        ("closed".to_owned(), "template0 IS_TEMPLATE true ALLOW_CONNECTIONS false".to_owned()),
        ("zweites".into(), quoted),
        ("fresh".into(), "template0 OWNER carol TABLESPACE own_space".into()),
    ];
    for strategy in strategies(cluster) {
        made.push((format!("shop_{strategy}"), "shop OWNER alice CONNECTION LIMIT 7".into()));
    }
    let last = strategies(cluster).last().context("no strategy")?;
    made.push((format!("placed_{last}"), "placed".into()));
    made.push((format!("moved_{last}"), "shop TABLESPACE third_space".into()));
    made.extend(locales.iter().map(|name| (format!("{name}_copy"), (*name).to_owned())));
    for (copy, options) in made {
        cluster.psql("postgres", &format!("CREATE DATABASE by_server TEMPLATE {options}"))?;
        let found = |name: &str| cluster.psql("postgres", &WHAT_IS_SAID.replace("NAME", name));
        let (ours, theirs) = (found(&copy)?, found("by_server")?);
        ensure!(ours == theirs, "{copy}\nours:   {ours}\nserver: {theirs}");
        let _ = cluster.psql("postgres", "ALTER DATABASE by_server IS_TEMPLATE false");
        cluster.psql("postgres", "DROP DATABASE by_server")?;
    }
    Ok(())
}

/// What the visibility maps of the shared catalogs say is true.
fn check_visibility(cluster: &TestCluster) -> Result<()> {
    cluster.psql("postgres", "CREATE EXTENSION pg_visibility")?;
    let wrong = "SELECT c.oid::regclass, t FROM pg_class c, pg_check_visible(c.oid) t WHERE relisshared AND relkind = 'r' \
         UNION ALL SELECT c.oid::regclass, t FROM pg_class c, pg_check_frozen(c.oid) t WHERE relisshared AND relkind = 'r'";
    let wrong = cluster.psql("postgres", wrong)?;
    ensure!(wrong.is_empty(), "said to be visible to all: {wrong}");
    Ok(())
}

/// Goes on in source and copies, and with the catalogs of databases.
fn work(cluster: &TestCluster) -> Result<()> {
    let before = contents(cluster, SHOP)?;
    for strategy in strategies(cluster) {
        let copy = format!("shop_{strategy}");
        for sql in [
            "INSERT INTO things SELECT i, 'new' FROM generate_series(5000, 6000) i",
            "DELETE FROM wide WHERE a < 20; UPDATE far SET b = b || 'x'",
            "SELECT nextval('numbers'); REFRESH MATERIALIZED VIEW CONCURRENTLY summary",
            "INSERT INTO parts VALUES (3, 'more'), (300, 'more'); INSERT INTO volatile_counted DEFAULT VALUES",
            "REVOKE ALL ON things FROM bob; REASSIGN OWNED BY alice TO carol; CREATE TABLE made (a int PRIMARY KEY)",
            "ALTER TABLE far SET TABLESPACE pg_default; ALTER TABLE things SET TABLESPACE outer_space",
        ] {
            cluster.psql(&copy, sql)?;
        }
        cluster.psql(&copy, "VACUUM FULL pg_class, things, wide")?;
        check(cluster, &copy)?;
        let numbers = cluster.psql(&copy, "SELECT last_value FROM numbers")?;
        ensure!(numbers == "9", "the sequence of {copy} is at {numbers}");
    }
    ensure!(contents(cluster, SHOP)? == before, "work in the copies has changed the source");
    let last = strategies(cluster).last().context("no strategy")?;
    for sql in [
        format!("CREATE DATABASE next TEMPLATE placed_{last}"),
        "ALTER DATABASE next RENAME TO after".into(),
        format!("ALTER DATABASE moved_{last} OWNER TO bob"),
        format!(
            "COMMENT ON DATABASE moved_{last} IS 'x'; ALTER DATABASE moved_{last} SET work_mem = '2MB'"
        ),
        format!("GRANT CONNECT ON DATABASE moved_{last} TO alice"),
        "ALTER DATABASE fresh SET TABLESPACE pg_default".into(),
        "DROP DATABASE zweites".into(),
        "VACUUM FULL pg_database".into(),
        "VACUUM FULL pg_shdepend".into(),
        "VACUUM pg_database, pg_shdepend".into(),
        "REINDEX TABLE pg_database".into(),
        "DROP DATABASE drittes".into(),
    ] {
        cluster.psql("postgres", &sql)?;
    }
    check(cluster, "postgres")
}

/// A crash of the server empties the unlogged relations of the copies, as those of the source, and nothing else.
fn crash(cluster: &mut TestCluster) -> Result<()> {
    cluster.kill()?;
    cluster.start()?;
    let last = strategies(cluster).last().context("no strategy")?;
    let copy = format!("moved_{last}");
    let rows = "SELECT count(*) FROM volatile";
    ensure!(cluster.psql(&copy, rows)? == "0", "unlogged rows after a crash");
    ensure!(contents(cluster, SHOP)? == contents(cluster, &copy)?, "{copy} after a crash");
    check(cluster, &copy)?;
    cluster.stop()?;
    check_checksums(cluster)?;
    // What the server made of it all is the ground of a next run.
    done(cluster, &["drop", &copy])?;
    let output = clone(cluster, &["after", "once_more"])?;
    ensure!(output.status.success(), "{output:?}");
    cluster.start()?;
    check(cluster, "postgres")?;
    ensure!(contents(cluster, "after")? == contents(cluster, "once_more")?, "once more");
    Ok(())
}

fn check_dumps(cluster: &TestCluster) -> Result<()> {
    let program = cluster.install().program("pg_dump");
    if !program.exists() {
        return Ok(());
    }
    let dump = |db: &str| -> Result<String> {
        let mut dump = Command::new(&program);
        for (name, value) in cluster.psql_command(db).get_envs() {
            dump.env(name, value.unwrap_or_default());
        }
        let output = dump.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_kept = |line: &&str| !line.contains("restrict");
        Ok(text.lines().filter(is_kept).collect::<Vec<_>>().join("\n"))
    };
    let expected = dump(SHOP)?;
    for strategy in strategies(cluster) {
        ensure!(dump(&format!("shop_{strategy}"))? == expected, "the dump of shop_{strategy}");
    }
    Ok(())
}

/// Where the last checkpoint lies, as `pg_controldata` says; nothing where that is not installed.
fn checkpoint_location(cluster: &TestCluster) -> Result<String> {
    let program = cluster.install().program("pg_controldata");
    if !program.exists() {
        return Ok(String::new());
    }
    let output = Command::new(program).arg("-D").arg(cluster.data_dir()).output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find_map(|line| line.strip_prefix("Latest checkpoint location:"));
    Ok(line.context("no checkpoint")?.trim().to_owned())
}

/// `pg_waldump` reads every record that was written since.
fn check_waldump(cluster: &TestCluster, begin: &str) -> Result<()> {
    let program = cluster.install().program("pg_waldump");
    if !program.exists() {
        return Ok(());
    }
    let end = checkpoint_location(cluster)?;
    let mut dump = Command::new(program);
    dump.arg("-p").arg(cluster.data_dir().join("pg_wal")).args(["-s", begin, "-e", &end]);
    let output = dump.output()?;
    let (text, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "pg_waldump: {said}");
    for kind in
        ["CREATE_WAL_LOG", "CREATE_FILE_COPY", "DROP", "FPI", "COMMIT", "CHECKPOINT_SHUTDOWN"]
    {
        ensure!(text.contains(kind), "pg_waldump shows no {kind}");
    }
    Ok(())
}
