//! Settings: `pg_settings`, `SHOW`, `SHOW ALL` and `current_setting` tell of files what their server tells.
//!
//! The server is asked first, and its files once it has stopped.
//!
//! Invariant: what is left out of a comparison is named here, with the reason.

mod support;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::versions::each_of;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use support::Served;

/// What a setting is, but for its value.
const FACTS: &str =
    "select name, unit, category, context, vartype, min_val, max_val, enumvals, pending_restart
    from pg_settings where name not like '%.%' order by lower(name) collate \"C\";";
/// Those that depend on the libraries that a server was built with, or have its minor version.
const BUILT: [&str; 4] =
    ["default_toast_compression", "io_method", "server_version_num", "wal_compression"];

const BOOTS: &str = "select name, boot_val from pg_settings where name not like '%.%';";
/// Places that were chosen when a server was built, and its minor version.
const PLACES: [&str; 4] =
    ["krb_server_keyfile", "server_version", "server_version_num", "unix_socket_directories"];

const VALUES: &str = "select name, setting, reset_val from pg_settings where name not like '%.%';";
/// What only a server that runs can tell, what psql sets, and that nothing is written here.
const OF_RUNNING: [&str; 18] = [
    // Where its files are.
    "config_file",
    "data_directory",
    "hba_file",
    "ident_file",
    // What its machine and its number of processes make of memory.
    "huge_pages_status",
    "io_max_concurrency",
    "max_stack_depth",
    "num_os_semaphores",
    "shared_memory_size",
    "shared_memory_size_in_huge_pages",
    // How it was built.
    "krb_server_keyfile",
    "server_version",
    "server_version_num",
    "ssl_library",
    "unix_socket_directories",
    // The client.
    "application_name",
    // The files.
    "default_transaction_read_only",
    "transaction_read_only",
];

/// What is set where a server is started and a client connects, which is told by no file, or not apart.
const OF_SERVER: [&str; 9] = [
    "application_name",
    "config_file",
    "data_directory",
    "hba_file",
    "ident_file",
    "max_stack_depth",
    "port",
    "unix_socket_directories",
    "wal_buffers",
];

const SOURCES: &str = "select name, source from pg_settings
    where name not like '%.%' and context not in ('internal');";

/// In the files, in forms that a server brings into its own.
const CONFIGURED: &str = "
    alter system set work_mem = '0.5GB';
    alter system set maintenance_work_mem = '123456';
    alter system set log_min_duration_statement = '1500ms';
    alter system set random_page_cost = '1.10';
    alter system set vacuum_cost_delay = '500us';
    alter system set enable_sort = 'FALSE';
    alter system set wal_level = 'LOGICAL';
    alter system set log_file_mode = '0640';
    alter system set datestyle = 'iso, dmy';
    alter system set shared_buffers = '2048kB';
    alter system set archive_mode = yes;
    alter system set archive_command = 'true';
    alter system set default_statistics_target = 77;
    alter system set log_timezone = 'Europe/Berlin';
    alter system set min_wal_size = '0.125GB';
    alter system set autovacuum_naptime = '2min';
    alter system set synchronous_commit = 'true';
    alter database postgres set lock_timeout = '3s';
";

/// The same of both, in one session each.
const ASKED: &str = "
    select count(*) from pg_settings where name like 'rds%';
    select setting from pg_settings where name = 'edb_redwood_date';
    select name, setting from pg_settings where name in ('lc_monetary');
    select name, setting, coalesce(unit, ''), vartype from pg_settings
     where vartype in ('bool', 'integer', 'real') and name like 'enable%' order by name;
    select current_setting('default_table_access_method', true), current_setting('crdb_version', true);
    select current_setting(name) from (values ('max_index_keys'), ('work_mem')) v (name);
    select current_setting(name, true) from (values ('no_such'), ('WORK_MEM'), (null)) v (name);
    select current_setting(name) from (values ('work_mem'), ('no_such')) v (name);
    select current_setting(null), current_setting('work_mem', null), current_setting('no.such', true);
    select current_setting('no_such'); select current_setting('no.such'); show no_such; show no.such;
    select current_setting('no_such') from pg_class where false;
    select current_setting('sort_mem'), current_setting('vacuum_mem'), current_setting('TimeZone');
    show max_connections; show Shared_Buffers; show sort_mem; show lock_timeout; show seed;
    select s.name, s.setting from pg_settings s join (values ('port_'), ('fsync')) v (n) on v.n = s.name;
    select count(*) from pg_show_all_settings() where name = 'work_mem';
    select enumvals, enumvals[1], pg_typeof(sourceline), pg_typeof(pending_restart) from pg_settings where name = 'bytea_output';
    set work_mem = '8MB'; show work_mem;
    select name, setting, unit, source, boot_val, reset_val from pg_settings where name = 'work_mem';
    select current_setting('work_mem'), current_setting(lower('WORK_MEM'));
    begin; set local work_mem = 65536; show work_mem;
    select setting, source from pg_settings where name = 'work_mem'; rollback;
    select setting from pg_settings where name = 'work_mem'; reset work_mem;
    select setting, source from pg_settings where name = 'work_mem';
    prepare p as select setting, current_setting(name) from pg_settings where name = 'work_mem';
    execute p; execute p; execute p; execute p; execute p; execute p; execute p;
    set work_mem = '16MB'; execute p; set work_mem = '17MB'; execute p; reset all; execute p;
    select * from current_setting('work_mem');
    set my.own = E'a=b\\n\\\\c'; select current_setting(n) from (values ('my.own'), ('My.Own')) v (n);
    select count(*) from pg_settings where name = 'my.own';
    begin isolation level serializable; select setting from pg_settings where name = 'transaction_isolation'; rollback;
    select setting from pg_settings where name = 'transaction_isolation';
    select set_config('statement_timeout', '90000', false); select setting from pg_settings where name = 'statement_timeout';
    show statement_timeout;
";

fn asked(mut psql: Command, script: &str) -> Result<String> {
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=0", "-f", "-"]);
    psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = psql.spawn()?;
    let mut input = child.stdin.take().context("a pipe")?;
    let script = script.to_owned();
    let writing = std::thread::spawn(move || input.write_all(script.as_bytes()));
    let output = child.wait_with_output()?;
    writing.join().ok().context("it writes")??;
    Ok(String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?)
}

/// What is asked of both.
struct Told {
    facts: String,
    boots: String,
    values: String,
    sources: String,
    shown: String,
    all: String,
    others: String,
}

impl Told {
    fn by(psql: &dyn Fn() -> Command) -> Result<Self> {
        let ask = |script: &str| asked(psql(), script);
        let facts = ask(FACTS)?;
        let names = facts.lines().filter_map(|line| line.split('|').next());
        let hidden = ["is_superuser", "role", "session_authorization", "ssl_renegotiation_limit"];
        let show = |name: &str| format!("\\echo -n '{name}|'\nshow {name};\n");
        let shows: String = names.chain(hidden).map(show).collect();
        Ok(Self {
            boots: ask(BOOTS)?,
            values: ask(VALUES)?,
            sources: ask(SOURCES)?,
            shown: ask(&shows)?,
            all: ask("show all")?,
            others: ask(ASKED)?,
            facts,
        })
    }
}

/// Lines by the names of settings that they begin with.
fn by_name(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once('|')).collect()
}

fn check_lines(what: &str, (found, expected): (&str, &str), but: &[&str]) -> Result<()> {
    let (found, expected) = (by_name(found), by_name(expected));
    let mut wrong = Vec::new();
    for (name, expected) in expected.iter().filter(|(name, _)| !but.contains(name)) {
        let found = found.get(name);
        if found != Some(expected) {
            wrong.push(format!("{name}: {found:?}, not {expected:?}"));
        }
    }
    ensure!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
    let names: Vec<_> = found.keys().filter(|name| !expected.contains_key(*name)).collect();
    ensure!(names.is_empty(), "{what} of {names:?}");
    ensure!(expected.len() > 300, "much is compared");
    Ok(())
}

fn check(install: &PgInstall) -> Result<()> {
    let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
    for statement in CONFIGURED.trim().lines() {
        cluster.psql("postgres", statement)?;
    }
    cluster.stop()?;
    cluster.start()?;
    let expected = Told::by(&|| cluster.psql_command("postgres"))?;
    cluster.stop()?;
    let served = Served::start(&cluster, &[])?;
    let found = Told::by(&|| {
        let mut command = Command::new(install.psql());
        command.env("PGHOST", served.directory.path()).env("PGPORT", "5432");
        command.env("PGUSER", "postgres").env("PGDATABASE", "postgres");
        command
    })?;
    let names = |text: &str| {
        text.lines().map(|line| line.split('|').next().map(str::to_owned)).collect::<Vec<_>>()
    };
    ensure!(names(&found.facts) == names(&expected.facts), "the same settings in the same order");
    check_lines("what they are", (&found.facts, &expected.facts), &BUILT)?;
    check_lines("at the begin", (&found.boots, &expected.boots), &PLACES)?;
    check_lines("values", (&found.values, &expected.values), &OF_RUNNING)?;
    check_lines("shown", (&found.shown, &expected.shown), &OF_RUNNING)?;
    let cut = |all: &str| {
        all.lines()
            .map(|line| line.rsplit_once('|').map_or(line, |(own, _)| own).to_owned() + "\n")
            .collect::<String>()
    };
    check_lines("all", (&cut(&found.all), &cut(&expected.all)), &OF_RUNNING)?;
    check_lines("sources", (&found.sources, &expected.sources), &OF_SERVER)?;
    for (found, expected) in found.others.lines().zip(expected.others.lines()) {
        ensure!(found == expected, "{found}\n{expected}");
    }
    ensure!(found.others == expected.others, "{}\n{}", found.others, expected.others);
    Ok(())
}

#[test]
fn settings_are_what_the_server_says() {
    each_of(&PgInstall::all(), check);
}
