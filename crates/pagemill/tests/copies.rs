//! Copies of clusters: tablespaces that lie elsewhere, links that lead to a live server, files of several moments.
//!
//! Each copy is made of the files of a real server, as people make them, and each refusal is told word for word.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagemill::{Cluster, OpenOptions, RecoveryOptions, Storage};
use pagemill_testkit::{ClusterOptions, PgInstall, Program, Session, TestCluster, each_of};

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

/// What a command prints, all of whose notices on standard error begin with the data directory.
fn prints(data: &Path, args: &[&str]) -> Result<String> {
    Ok(String::from_utf8(program().succeed(data, args)?)?)
}

/// The one line with which a command fails.
fn refused(data: &Path, args: &[&str]) -> Result<String> {
    let output = program().run(data, args)?;
    let said = String::from_utf8(output.stderr)?;
    let is_of_flag = said.lines().any(|line| line.starts_with("pagemill: --tablespace-mapping:"));
    let status = if is_of_flag { 2 } else { 1 };
    ensure!(output.status.code() == Some(status), "{args:?}: {}: {said}", output.status);
    ensure!(output.stdout.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    let errors = said.lines().filter(|line| !line.contains(": read as after redo"));
    let errors: Vec<&str> = errors.collect();
    ensure!(errors.len() == 1, "{args:?}: {said}");
    Ok(errors[0].to_owned())
}

fn cp(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    ensure!(status.success(), "cp: {status}");
    Ok(())
}

fn create(install: &PgInstall) -> Result<TestCluster> {
    TestCluster::create(install, &ClusterOptions::default())
}

const TABLES: &str = "\
create table here as select i from generate_series(1, 300) i;
create table far (i int primary key using index tablespace fast) tablespace fast;
insert into far select generate_series(1, 500);";

/// A cluster with a tablespace, and the number and the directory of that.
fn with_tablespace(install: &PgInstall) -> Result<(TestCluster, String, PathBuf)> {
    let cluster = create(install)?;
    let place = cluster.tablespace_dir("fa=st")?;
    cluster.psql("postgres", &format!("create tablespace fast location '{}'", place.display()))?;
    cluster.psql("postgres", TABLES)?;
    let oid = cluster.psql("postgres", "select oid from pg_tablespace where spcname = 'fast'")?;
    Ok((cluster, oid.trim().to_owned(), place))
}

const COUNT: [&str; 5] = ["count", "-d", "postgres", "-t", "far"];

fn mapped(args: &[&str], mapping: &str) -> Vec<String> {
    let mut all: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    all.extend(["--tablespace-mapping".to_owned(), mapping.to_owned()]);
    all
}

fn words(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// A copy of a killed cluster, whose link still leads to the server that was started again.
fn follows_no_link_to_a_live_server(install: &PgInstall) -> Result<()> {
    let (mut cluster, oid, place) = with_tablespace(install)?;
    cluster.psql("postgres", "checkpoint")?;
    cluster.psql("postgres", "insert into far select generate_series(501, 700)")?;
    cluster.kill()?;
    let copy = cluster.root().join("copy");
    cp(&cluster.data_dir(), &copy)?;
    let own = cluster.root().join("own=fast");
    cp(&place, &own)?;
    cluster.start()?;
    cluster.psql("postgres", "insert into far select generate_series(701, 5000)")?;

    let escaped = |path: &Path| path.display().to_string().replace('=', "\\=");
    let old = escaped(&place);
    let pid = fs::read_to_string(cluster.data_dir().join("postmaster.pid"))?;
    let pid = pid.lines().next().context("no process")?.to_owned();
    let live = format!(
        "pagemill: {}/pg_tblspc/{oid}: it leads to {}, which the running server on {} (process {pid}) uses: its files are \
         of another moment than this copy's: name where this copy has them with --tablespace-mapping {old}=NEWDIR",
        copy.display(),
        place.display(),
        cluster.data_dir().display()
    );
    let live = live + ", or read on all the same with --allow-inconsistent";
    for args in [&COUNT[..], &["count", "-d", "postgres", "-t", "here"], &["ls"]] {
        ensure!(refused(&copy, args)? == live, "{args:?}: {}", refused(&copy, args)?);
    }
    // Copied from a running server, the lock file tells whose copy it is.
    fs::copy(cluster.data_dir().join("postmaster.pid"), copy.join("postmaster.pid"))?;
    fs::remove_file(copy.join("postmaster.opts"))?;
    ensure!(refused(&copy, &COUNT)? == live, "by postmaster.pid: {}", refused(&copy, &COUNT)?);

    let mapping = format!("{old}={}", escaped(&own));
    let counted = mapped(&COUNT, &mapping);
    ensure!(prints(&copy, &words(&counted))?.trim() == "700", "what the copy has");
    let ordered = mapped(&[&COUNT[..], &["--order-by", "far_pkey"]].concat(), &mapping);
    ensure!(prints(&copy, &words(&ordered))?.trim() == "700", "by an index of the copy");
    let mut plan = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    plan.args(["wal", "plan", "-D"]).arg(&copy);
    let unmapped = String::from_utf8(plan.output()?.stderr)?;
    ensure!(unmapped.trim_end() == live, "{unmapped}");
    let plan = plan.args(["--tablespace-mapping", &mapping]).output()?;
    ensure!(plan.status.success(), "{}", String::from_utf8_lossy(&plan.stderr));
    let plan = String::from_utf8(plan.stdout)?;
    let told = format!("{oid} in {}, read in {}", place.display(), own.display());
    ensure!(plan.contains(&told), "{plan}");

    // What is read there all the same is newer than the copy's WAL, and that is told, too.
    cluster.psql("postgres", "checkpoint")?;
    let accepted = mapped(&COUNT, &format!("{old}={old}"));
    let accepted =
        [&words(&accepted)[..], &["--allow-inconsistent", "--on-damage", "skip"]].concat();
    let said = String::from_utf8(program().run(&copy, &accepted)?.stderr)?;
    ensure!(said.contains("uses: its files are of another moment than this copy's\n"), "{said}");
    ensure!(said.contains("; it is read as it lies, and so is every other one like it"), "{said}");
    Ok(())
}

#[test]
fn a_link_to_the_tablespace_of_a_running_server_is_refused_and_can_be_mapped() {
    each_of(&PgInstall::all(), follows_no_link_to_a_live_server);
}

/// A copy of a running cluster that says where its tablespaces were, and has no links: files as a tar backup unpacks them.
fn copied_by_hand(cluster: &TestCluster, place: &Path, oid: &str) -> Result<PathBuf> {
    let is_14 = cluster.major() == 14;
    let (begin, end) = match is_14 {
        true => ("pg_start_backup('x', true, false)", "pg_stop_backup(false)"),
        false => ("pg_backup_start('x', true)", "pg_backup_stop()"),
    };
    let copy = cluster.root().join("copy");
    let script = format!(
        "select {begin} \\g /dev/null\n\\! cp -a {data} {copy}\n\\! cp -a {place} {copy}/../own\n\
         insert into far select generate_series(501, 600);\n\
         create temp table ended as select * from {end};\n\
         \\pset tuples_only on\n\\pset format unaligned\n\
         select labelfile from ended \\g {copy}/backup_label\n\
         select spcmapfile from ended \\g {copy}/tablespace_map\n",
        data = cluster.data_dir().display(),
        copy = copy.display(),
        place = place.display(),
    );
    let file = cluster.root().join("backup.sql");
    fs::write(&file, script)?;
    cluster.psql_file("postgres", &file, &[])?;
    for name in ["postmaster.pid", "postmaster.opts"] {
        fs::remove_file(copy.join(name))?;
    }
    fs::remove_file(copy.join("pg_tblspc").join(oid))?;
    fs::remove_dir_all(copy.join("pg_wal"))?;
    cp(&cluster.data_dir().join("pg_wal"), &copy.join("pg_wal"))?;
    Ok(copy)
}

fn finds_tablespaces_by_their_map(install: &PgInstall) -> Result<()> {
    let (mut cluster, oid, place) = with_tablespace(install)?;
    cluster.psql("postgres", "checkpoint")?;
    let copy = copied_by_hand(&cluster, &place, &oid)?;
    cluster.stop()?;

    ensure!(prints(&copy, &COUNT)?.trim() == "600", "at the path of the map itself");
    let away = cluster.root().join("away");
    fs::rename(&place, &away)?;
    let lost = refused(&copy, &COUNT)?;
    let old = place.display().to_string().replace('=', "\\=");
    let says = format!(
        "it belongs to tablespace \"fast\" (OID {oid}), which has no link, and which tablespace_map has in {}, which is \
         not there: mount or restore it, or name where it is with --tablespace-mapping {old}=NEWDIR",
        place.display(),
    );
    ensure!(lost.ends_with(&says), "{lost}");
    let here = ["count", "-d", "postgres", "-t", "here"];
    ensure!(prints(&copy, &here)?.trim() == "300", "the rest is read");
    let own = cluster.root().join("own");
    let counted = mapped(&COUNT, &format!("{old}={}", own.display()));
    ensure!(prints(&copy, &words(&counted))?.trim() == "600", "where it is mapped");
    let nowhere = refused(&copy, &words(&mapped(&COUNT, "/nowhere=/elsewhere")))?;
    let says =
        "pagemill: --tablespace-mapping: /nowhere is no tablespace of this cluster, which has";
    ensure!(nowhere == format!("{says} {}", place.display()), "{nowhere}");
    let usage = program().run(&copy, &words(&mapped(&COUNT, "relative=/x")))?;
    ensure!(usage.status.code() == Some(2), "{}", usage.status);
    recovers_as_a_library(&copy, &place, &own)
}

fn recovers_as_a_library(copy: &Path, old: &Path, new: &Path) -> Result<()> {
    let recovery = RecoveryOptions::new()
        .wal_directory(copy.join("pg_wal"))
        .until("consistent".parse().map_err(anyhow::Error::msg)?)
        .tablespace_at(old, new);
    let options = OpenOptions::default();
    let cluster = Cluster::recover(Storage::real(), copy, options, &recovery)?;
    let redone = cluster.redone().context("nothing was redone")?;
    ensure!(redone.end.stop.is_some(), "{redone}");
    ensure!(cluster.database("postgres")?.table("far")?.count()? == 600, "rows of the library");
    ensure!(cluster.warnings().is_empty(), "{:?}", cluster.warnings());
    // By default as the command: all of its own WAL.
    let here = Cluster::open(copy)?.database("postgres")?.table("here")?.count()?;
    ensure!(here == 300, "{here}");
    Ok(())
}

#[test]
fn an_unpacked_backup_without_links_has_its_tablespaces_where_its_map_or_a_mapping_says() {
    each_of(&PgInstall::all(), finds_tablespaces_by_their_map);
}

const QUIET_AND_BUSY: &str = "\
create table quiet as select i from generate_series(1, 300) i;
create table busy (id int primary key);
insert into busy select generate_series(1, 300);
delete from quiet where i % 3 = 0;
checkpoint";

/// The file of a relation, below the data directory.
fn file_of(cluster: &TestCluster, relation: &str) -> Result<String> {
    let sql = format!("select pg_relation_filepath('{relation}')");
    Ok(cluster.psql("postgres", &sql)?.trim().to_owned())
}

/// The LSN of the page that a message names.
fn page_lsn(file: &Path, message: &str) -> Result<String> {
    let block = message.split_once(", block ").and_then(|(_, rest)| rest.split_once(':'));
    let start = block.context("no block")?.0.parse::<usize>()? * 8192;
    let bytes = fs::read(file)?;
    let word = |at: usize| bytes[start + at..].first_chunk().map(|word| u32::from_le_bytes(*word));
    let (high, low) = (word(0).context("no page")?, word(4).context("no page")?);
    Ok(format!("{high:X}/{low:X}"))
}

/// A killed cluster's copy into which files of a later moment come, one after the other.
fn finds_files_of_a_later_moment(install: &PgInstall) -> Result<()> {
    let options = ClusterOptions {
        // So that redo begins from the pages of the files.
        settings: vec!["full_page_writes = off".to_owned(), "autovacuum = off".to_owned()],
        ..ClusterOptions::default()
    };
    let mut cluster = TestCluster::create(install, &options)?;
    for statement in QUIET_AND_BUSY.split(';') {
        cluster.psql("postgres", statement)?;
    }
    cluster.psql("postgres", "insert into busy values (301)")?;
    cluster.kill()?;
    let copy = cluster.root().join("copy");
    cp(&cluster.data_dir(), &copy)?;
    cluster.start()?;
    cluster.psql("postgres", "vacuum quiet")?;
    cluster.psql("postgres", "insert into busy values (302)")?;
    cluster.psql("postgres", "create table later (i int)")?;
    let files = ["quiet", "busy", "busy_pkey", "pg_class"].map(|name| file_of(&cluster, name));
    cluster.stop()?;

    let count = |table: &'static str| ["count", "-d", "postgres", "-t", table];
    let said = String::from_utf8(program().run(&copy, &count("busy"))?.stderr)?;
    let end = said.split_once(" to ").and_then(|(_, rest)| rest.split_once(','));
    let end = end.context("no end of WAL")?.0.to_owned();
    let ordered = [&count("busy")[..], &["--order-by", "busy_pkey", "--no-index-only"]].concat();
    let counted =
        [count("quiet").to_vec(), count("busy").to_vec(), ordered, vec!["ls", "-d", "postgres"]];
    for (file, args) in files.into_iter().zip(counted) {
        let file = file?;
        let (whole, path) = (fs::read(copy.join(&file))?, copy.join(&file));
        ensure!(program().run(&copy, &args)?.status.success(), "{args:?} of the sound copy");
        fs::copy(cluster.data_dir().join(&file), &path)?;
        let found = refused(&copy, &args)?;
        let lsn = page_lsn(&path, &found)?;
        let says = format!(
            "its LSN is {lsn}, and WAL ends at {end}: the file is of a later moment than the WAL; --allow-inconsistent reads \
             on all the same"
        );
        let begins = format!("pagemill: {}: fork main, block ", path.display());
        ensure!(found.starts_with(&begins) && found.ends_with(&says), "{found}: {begins} {says}");
        if args == count("quiet") {
            accepts_or_leaves_out(&copy, &args)?;
        }
        fs::write(&path, whole)?;
    }
    Ok(())
}

fn accepts_or_leaves_out(copy: &Path, count: &[&str]) -> Result<()> {
    let accepted = program().run(copy, &[count, &["--allow-inconsistent"]].concat())?;
    let said = String::from_utf8(accepted.stderr)?;
    ensure!(accepted.status.success() && accepted.stdout == b"200\n", "{said}");
    let warnings: Vec<&str> = said.lines().filter(|line| line.contains("its LSN is")).collect();
    let ends = "it is read as it lies, and so is every other one like it";
    ensure!(warnings.len() == 1 && warnings[0].ends_with(ends), "{said}");
    let skipped = program().run(copy, &[count, &["--on-damage", "skip"]].concat())?;
    let said = String::from_utf8(skipped.stderr)?;
    ensure!(skipped.status.code() == Some(1) && skipped.stdout != b"200\n", "{said}");
    ensure!(said.contains("block 0: its LSN is"), "{said}");
    Ok(())
}

#[test]
fn pages_newer_than_the_wal_are_found_with_and_without_records_and_in_catalogs_and_indexes() {
    each_of(&PgInstall::all(), finds_files_of_a_later_moment);
}

/// WAL with a damaged record and whole segments behind it.
fn reads_up_to_damage_when_told(install: &PgInstall) -> Result<()> {
    let options = ClusterOptions {
        initdb_flags: vec!["--wal-segsize=1".into()],
        ..ClusterOptions::default()
    };
    let mut cluster = TestCluster::create(install, &options)?;
    cluster.psql("postgres", "create table t (i int, v text)")?;
    cluster.psql("postgres", "checkpoint")?;
    let first = cluster.psql("postgres", "select pg_walfile_name(pg_switch_wal())")?;
    cluster.psql("postgres", "insert into t values (1, 'first')")?;
    let damaged =
        cluster.psql("postgres", "select pg_walfile_name(pg_current_wal_insert_lsn())")?;
    ensure!(first != damaged, "{first}");
    let rows = "insert into t select i, repeat('x', 500) from generate_series(2, 8000) i";
    cluster.psql("postgres", rows)?;
    cluster.kill()?;
    let segment = cluster.data_dir().join("pg_wal").join(damaged.trim());
    let mut bytes = fs::read(&segment)?;
    for byte in &mut bytes[600_000..600_100] {
        *byte ^= 0xFF;
    }
    fs::write(&segment, bytes)?;
    let count = ["count", "-d", "postgres", "-t", "t"];
    let said = refused(&cluster.data_dir(), &count)?;
    let begins = "pagemill: WAL is damaged at ";
    let ends = "is whole, so WAL was not cut there; --allow-inconsistent reads what there is";
    ensure!(said.starts_with(begins) && said.ends_with(ends), "{said}");
    let told = [&count[..], &["--allow-inconsistent"]].concat();
    let output = program().run(&cluster.data_dir(), &told)?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.success() && output.stdout == b"1\n", "{said}");
    ensure!(said.lines().any(|line| line.contains(": WAL is damaged at ")), "{said}");
    Ok(())
}

#[test]
fn damaged_wal_is_read_up_to_the_damage_only_when_that_is_allowed() {
    each_of(&PgInstall::all(), reads_up_to_damage_when_told);
}

/// A backup during which databases are made by copying files: before, while and after its own files are copied.
fn follows_databases_copied_in_a_backup(install: &PgInstall) -> Result<()> {
    let mut cluster = create(install)?;
    let strategy = if install.major == 14 { "" } else { " strategy file_copy" };
    let make = |name: &str, template: &str| {
        cluster.psql("postgres", &format!("create database {name} template {template}{strategy}"))
    };
    let count = |data: &Path, name: &str| {
        prints(data, &["count", "-d", name, "-t", "t"]).map(|rows| rows.trim().to_owned())
    };
    cluster.psql("postgres", "create database source")?;
    cluster.psql("source", "create table t (i int primary key, v text)")?;
    cluster.psql("source", "insert into t select i, 'first' from generate_series(1, 1000) i")?;
    // A table of it lies in another tablespace; 14 has none within the data directory.
    let place = if install.major == 14 { "" } else { " tablespace near" };
    if !place.is_empty() {
        cluster.psql("postgres", "alter system set allow_in_place_tablespaces = on")?;
        // What STRATEGY wal_log writes fills segments, and each copy of files is a checkpoint.
        cluster.psql("postgres", "alter system set wal_keep_size = '1GB'")?;
        cluster.psql("postgres", "select pg_reload_conf()")?;
        cluster.psql("postgres", "create tablespace near location ''")?;
    }
    cluster.psql("source", &format!("create table u{place} as select 7 as i, 'u' as v"))?;
    let (begin, end) = match install.major {
        14 => ("pg_start_backup('x', true, false)", "pg_stop_backup(false)"),
        _ => ("pg_backup_start('x', true)", "pg_backup_stop()"),
    };
    let mut session = Session::open(&cluster, "postgres")?;
    session.run(&format!("select {begin};"))?;
    cluster.psql("source", "delete from t where i % 2 = 0")?;
    cluster.psql("source", "vacuum full t")?;
    make("before", "source")?;
    cluster
        .psql("before", "insert into t select i, 'before' from generate_series(2001, 2010) i")?;
    let copy = cluster.root().join("copy");
    cp(&cluster.data_dir(), &copy)?;
    cluster.psql("source", "insert into t select i, 'later' from generate_series(3001, 3100) i")?;
    make("after", "before")?;
    cluster.psql("after", "update t set v = 'after' where i < 100")?;
    cluster.psql("after", "insert into t values (-1, 'after')")?;
    make("gone", "after")?;
    cluster.psql("postgres", "drop database gone")?;
    let mut names = vec!["source", "before", "after"];
    if install.major > 14 {
        // All of these is in WAL: the first is made by it, and moved away before it is copied the second time.
        cluster.psql("postgres", "create database made strategy wal_log")?;
        cluster.psql(
            "made",
            "create table t as select i, 'made' as v from generate_series(1, 50) i",
        )?;
        cluster.psql("made", "alter table t add primary key (i)")?;
        cluster.psql("made", &format!("create table u{place} as select 7 as i, 'u' as v"))?;
        make("of_made", "made")?;
        cluster.psql("of_made", "delete from t where i < 10")?;
        cluster.psql("postgres", "create tablespace apart location ''")?;
        cluster.psql("postgres", "alter database made set tablespace apart")?;
        make("of_moved", "made")?;
        make("of_copy", "of_made")?;
        cluster.psql("made", "update t set v = 'moved' where i > 40")?;
        cluster.psql("of_copy", "insert into t values (-1, 'of_copy')")?;
        names.extend(["made", "of_made", "of_moved", "of_copy"]);
    }
    let label = session.run(&format!("select labelfile from {end};"))?;
    fs::write(copy.join("backup_label"), label + "\n")?;
    drop(session);
    fs::remove_file(copy.join("postmaster.pid"))?;
    fs::remove_dir_all(copy.join("pg_wal"))?;
    cp(&cluster.data_dir().join("pg_wal"), &copy.join("pg_wal"))?;
    for name in names {
        let rows = cluster.psql(name, "copy (select * from t order by 1) to stdout")?;
        let args = ["export", "-d", name, "-t", "t", "--order-by", "t_pkey"];
        let read = prints(&copy, &args)?;
        ensure!(read.trim_end() == rows, "{name}: {} rows", count(&copy, name)?);
        ensure!(prints(&copy, &["export", "-d", name, "-t", "u"])? == "7\tu\n", "{name}");
    }
    let listed = prints(&copy, &["ls"])?;
    ensure!(!listed.contains("gone"), "{listed}");

    // Without the files that were copied, that database alone is not read.
    let of_source = "select oid from pg_database where datname = 'source'";
    let oid = cluster.psql("postgres", of_source)?;
    cluster.stop()?;
    fs::remove_dir_all(copy.join("base").join(oid.trim()))?;
    let lost = refused(&copy, &["count", "-d", "after", "-t", "t"])?;
    ensure!(
        lost == "pagemill: database \"after\" was made by copying files after the backup began, and the files that were copied \
                 are not in it: read a backup that was begun later",
        "{lost}"
    );
    prints(&copy, &["ls", "-d", "postgres"])?;
    Ok(())
}

#[test]
fn databases_made_by_copying_files_during_a_backup_are_as_the_servers_recovery_copies_them() {
    each_of(&PgInstall::all(), follows_databases_copied_in_a_backup);
}
