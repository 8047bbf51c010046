//! What a session asks of its server, of the sessions beside it, of the control file and of time zones: as the server of the same
//! files answers, where both can know the same.
//!
//! The files are asked first, and the server afterwards, as one that stops writes a checkpoint.

mod support;

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::versions::each_of;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use support::Served;

/// How long a session may take to be seen.
const PATIENCE: Duration = Duration::from_secs(30);

/// The same of both, in one session each.
const ASKED: &str = "
    select pg_control_version, catalog_version_no, system_identifier from pg_control_system();
    select * from pg_control_checkpoint();
    select * from pg_control_init();
    select * from pg_control_recovery();
    select datname, age(datfrozenxid), mxid_age(datminmxid) from pg_database order by 1;
    select age('0'::xid), age('2'::xid), age('3'::xid), age('4294967295'::xid), mxid_age('0');
    select pg_current_snapshot(), txid_current_snapshot();
    select pg_snapshot_xmin(pg_current_snapshot()), txid_snapshot_xmax(txid_current_snapshot());
    select inet_client_addr(), inet_client_port(), inet_server_addr(), inet_server_port();
    select pg_postmaster_start_time() <= now(), pg_conf_load_time() <= now(), pg_backend_pid() > 0;
    select clock_timestamp() >= now(), pg_typeof(clock_timestamp());
    select count(*) from pg_prepared_xacts;
    select * from pg_stat_wal_receiver;
    select * from pg_stat_replication;
    select * from pg_stat_progress_vacuum;
    select * from pg_stat_progress_create_index;
    select m, p, pg_indexam_progress_phasename(m::oid, p) from generate_series(0, 7) p, (values (403), (405), (1)) v (m) order by 1, 2;
    select * from pg_stat_get_progress_info('vacuum');
    select * from pg_stat_get_progress_info('nothing');
    select name, installed_version, comment from pg_available_extensions where installed_version is not null;
    select name, version, installed, relocatable from pg_available_extension_versions where installed;
    select s.pid = pg_backend_pid() from pg_stat_get_activity(pg_backend_pid()) s;
    select * from pg_stat_get_activity(2147483647);
    select count(*) > 0 from pg_stat_get_activity(-1);
    select datname, usename, application_name, client_addr, client_port, state, query, backend_type,
           xact_start is null, backend_start <= query_start, wait_event
      from pg_stat_activity where backend_type = 'client backend';
    select s.ssl, s.version, s.cipher, s.bits from pg_stat_ssl s where pid = pg_backend_pid();
    select * from pg_timezone_abbrevs order by 1;
    set timezone = 'right/UTC';
    show timezone;
";

/// Where zones are this machine's own, as Debian's servers have them.
const ZONES: &str = "select * from pg_timezone_names order by name collate \"C\";";

fn asked(mut psql: Command, script: &str) -> Result<String> {
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=0", "-f", "-"]).env("PGTZ", "UTC");
    psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = psql.spawn()?;
    child.stdin.take().context("a pipe")?.write_all(script.as_bytes())?;
    let output = child.wait_with_output()?;
    let errors = String::from_utf8(output.stderr)?;
    // The server says of leap seconds that they are why.
    let errors =
        errors.lines().filter(|line| !line.contains("right/UTC") && !line.contains("leap"));
    Ok(errors.fold(String::from_utf8(output.stdout)?, |all, line| all + line + "\n"))
}

fn psql(served: &Served, install: &PgInstall, user: &str) -> Command {
    let mut command = Command::new(install.psql());
    command.env("PGHOST", served.directory.path()).env("PGPORT", "5432");
    command.env("PGUSER", user).env("PGDATABASE", "postgres");
    command
}

fn check(install: &PgInstall) -> Result<()> {
    let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
    cluster.psql("postgres", "create role other login")?;
    cluster.stop()?;
    let is_debian = install.bindir.starts_with("/usr/lib/postgresql");
    let script = if is_debian { [ASKED, ZONES].concat() } else { ASKED.to_owned() };
    let served = Served::start(&cluster, &[])?;
    let found = asked(psql(&served, install, "postgres"), &script)?;
    sessions(&served, install)?;
    drop(served);
    cluster.start()?;
    let expected = asked(cluster.psql_command("postgres"), &script)?;
    for (found, expected) in found.lines().zip(expected.lines()) {
        ensure!(found == expected, "{found}\n{expected}");
    }
    ensure!(found.lines().count() == expected.lines().count(), "{found}\n{expected}");
    ensure!(found.lines().count() > if is_debian { 600 } else { 200 }, "much is compared");
    Ok(())
}

/// A session that waits within a transaction.
fn waiting(mut psql: Command) -> Result<Child> {
    let mut child = psql.args(["-X", "-q"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let input = child.stdin.as_mut().context("a pipe")?;
    input.write_all(b"set application_name = 'waiting'; begin; select 'secret';\n")?;
    input.flush()?;
    Ok(child)
}

/// Another session is seen with what it does, by those who may see it.
fn sessions(served: &Served, install: &PgInstall) -> Result<()> {
    const ASKED: &str = "select application_name, state, query, xact_start < now(), wait_event,
         backend_type from pg_stat_activity where pid <> pg_backend_pid();";
    const SEEN: &str = "waiting|idle in transaction|select 'secret';|t|ClientRead|client backend\n";
    const HIDDEN: &str = "waiting||<insufficient privilege>|||\n";
    let mut child = waiting(psql(served, install, "postgres"))?;
    let begun = Instant::now();
    let seen = loop {
        let seen = asked(psql(served, install, "postgres"), ASKED)?;
        if seen == SEEN || begun.elapsed() > PATIENCE {
            break seen;
        }
    };
    let hidden = asked(psql(served, install, "other"), ASKED)?;
    drop(child.stdin.take());
    child.wait()?;
    ensure!(seen == SEEN, "{seen}");
    ensure!(hidden == HIDDEN, "{hidden}");
    Ok(())
}

#[test]
fn a_session_is_told_what_its_server_would_tell() {
    each_of(&PgInstall::spread(), check);
}
