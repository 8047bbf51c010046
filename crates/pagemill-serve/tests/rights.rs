//! What roles may read that are no superusers: the files answer where the server answered, and refuse where it refused, in its words.
//!
//! Where more is denied than by the server, it is on a list here. psql is the client, in one session for each role, and some.

mod support;

use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::versions::each_of;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use support::Served;

const OBJECTS: &str = include_str!("rights/objects.sql");
const RELATIONS: &str = include_str!("rights/relations.sql");
const PRIVILEGES: &str = include_str!("rights/privileges.sql");
const POLICIES: &str = include_str!("rights/policies.sql");
const FUNCTIONS: &str = include_str!("rights/functions.sql");

const ROLES: [&str; 9] =
    ["member", "apart", "reader", "outsider", "maker", "passing", "granted", "writer", "postgres"];

/// What is asked in a session of its own: several statements, and plans, of which the server has others.
const ASKED: [&str; 14] = [
    "explain select * from open.kept",
    "prepare p as select * from open.kept; execute p",
    "begin; declare c cursor for select * from open.kept",
    "explain select open.hidden(i) from open.free",
    "prepare p as select open.hidden(1); execute p",
    "set search_path = shut; select * from t",
    "set search_path = shut, open; select current_schemas(false), count(*) from free",
    "select p from open.cols_view; select subname from pg_subscription; select subconninfo from pg_subscription",
    "select count(*) > 0 from pg_roles; select count(*) from pg_largeobject; select count(*) > 0 from pg_statistic",
    "select current_user, session_user; show is_superuser",
    "show log_filename",
    "select current_setting('log_filename')",
    "select current_setting(name, true) from (values ('work_mem'), ('ssl_ciphers')) v (name)",
    "select name from pg_settings where name in ('config_file', 'log_filename', 'ssl_ciphers', 'work_mem') order by 1",
];

/// What is denied here, and not by the server, which does not come to make these calls ready: nobody asks for the column, or one
/// column alone is told apart.
const DENIED: [(&str, &[&str]); 2] = [
    ("select 1 from open.calls limit 1", &["apart", "reader", "outsider"]),
    ("select count(distinct u) from open.keys", &["apart", "outsider"]),
];

fn psql(served: &Served, cluster: &TestCluster) -> Command {
    let mut command = Command::new(cluster.install().psql());
    command.env("PGHOST", served.directory.path()).env("PGPORT", "5432");
    command
}

fn asked(mut psql: Command, (role, database): (&str, &str), statement: &str) -> Result<Output> {
    psql.args(["-X", "-q", "-A", "-w", "-U", role, "-d", database, "-v", "ON_ERROR_STOP=1"]);
    Ok(psql.args(["-c", statement]).env("PGTZ", "UTC").output()?)
}

/// What each of these statements prints, in one session.
fn asked_in_one(mut psql: Command, role: &str, statements: &[&str]) -> Result<Vec<String>> {
    const MARK: &str = "=====\n";
    let script = tempfile::NamedTempFile::new()?;
    let begin = |statement: &&str| format!("\\echo =====\n\\warn =====\n{statement}\n");
    std::fs::write(script.path(), statements.iter().map(begin).collect::<String>())?;
    psql.args(["-X", "-q", "-A", "-w", "-U", role, "-d", "postgres"]);
    psql.args(["-v", "ON_ERROR_STOP=0", "-f"]).arg(script.path());
    let output = psql.env("PGTZ", "UTC").output()?;
    let (rows, errors) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    let printed: Vec<String> = rows
        .split(MARK)
        .zip(errors.split(MARK))
        .skip(1)
        .map(|(rows, errors)| format!("{rows}{}", without_places(errors)))
        .collect();
    ensure!(printed.len() == statements.len(), "{role}: {} answers: {errors}", printed.len());
    Ok(printed)
}

/// The lines that only one of both has.
fn differences(found: &str, told: &str) -> String {
    let only = |one: &str, other: &str| -> String {
        let other: std::collections::HashSet<&str> = other.lines().collect();
        let lines: Vec<&str> = one.lines().filter(|line| !other.contains(line)).take(6).collect();
        lines.join("\n  ")
    };
    format!("  here: {}\n  there: {}", only(found, told), only(told, found))
}

/// What both print, without places in the statement, functions around the fault and names that are near.
fn text(output: &Output) -> String {
    let errors = without_places(&String::from_utf8_lossy(&output.stderr));
    format!("{}{errors}", String::from_utf8_lossy(&output.stdout))
}

fn without_places(errors: &str) -> String {
    let place = |line: &str| match line.strip_prefix("psql:") {
        Some(rest) => rest.split_once(": ").map_or(rest, |(_, rest)| rest).to_owned(),
        None => line.to_owned(),
    };
    let is_told = |line: &&str| {
        let beside = ["LINE ", "HINT: ", "CONTEXT: ", "DETAIL: "];
        !beside.iter().any(|begin| line.starts_with(begin)) && line.trim() != "^"
    };
    let errors: Vec<String> = errors.lines().filter(is_told).map(place).collect();
    errors.join("\n")
}

fn is_refused_here(output: &Output) -> bool {
    !output.status.success() && text(output).contains("not supported here")
}

/// What only later versions can grant.
fn grants_of(major: u32) -> &'static str {
    match major {
        14 => "",
        15 => "grant set on parameter work_mem to holders, public;",
        16 => {
            "grant set on parameter work_mem to holders, public;
             grant chain to outsider with inherit false; grant holders to helper with set false;"
        }
        _ => {
            "grant set on parameter work_mem to holders, public;
             grant chain to outsider with inherit false; grant holders to helper with set false;
             grant pg_maintain to helper; grant maintain on open.kept to holders;"
        }
    }
}

/// The statements of a file that are for a version.
fn statements(text: &str, major: u32) -> impl Iterator<Item = &str> {
    let (mut is_wanted, mut is_first) = (true, true);
    text.lines().filter(move |line| {
        if std::mem::take(&mut is_first) {
            return false;
        }
        let bound =
            |word: &str| line.strip_prefix(word).and_then(|bound| bound.parse::<u32>().ok());
        match (bound("-- from "), bound("-- until ")) {
            (None, None) => std::mem::replace(&mut is_wanted, true),
            (from, until) => {
                is_wanted = from.is_none_or(|from| major >= from)
                    && until.is_none_or(|until| major <= until);
                false
            }
        }
    })
}

fn check(install: &PgInstall) -> Result<()> {
    let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
    // Views run as who asks from 15 on.
    let objects = match install.major {
        14 => OBJECTS.replace("with (security_invoker = true)", ""),
        _ => OBJECTS.to_owned(),
    };
    let objects = objects + grants_of(install.major);
    let script = cluster.root().join("objects.sql");
    std::fs::write(&script, objects)?;
    cluster.psql_file("postgres", &script, &[])?;
    let cases = || ROLES.iter().flat_map(|role| ASKED.iter().map(|asked| (*role, *asked)));
    let mut expected = Vec::new();
    for (role, statement) in cases() {
        expected.push(asked(cluster.psql_command("postgres"), (role, "postgres"), statement)?);
    }
    let texts = [RELATIONS, PRIVILEGES, FUNCTIONS, POLICIES];
    let together: Vec<&str> =
        texts.iter().flat_map(|text| statements(text, install.major)).collect();
    let all_asked = |command: &dyn Fn() -> Command| -> Result<Vec<Vec<String>>> {
        ROLES.iter().map(|role| asked_in_one(command(), role, &together)).collect()
    };
    let told = all_asked(&|| cluster.psql_command("postgres"))?;
    cluster.stop()?;
    let served = Served::start(&cluster, &[])?;
    let (mut answered, mut wrong) = (0, Vec::new());
    for ((role, statement), expected) in cases().zip(&expected) {
        let found = asked(psql(&served, &cluster), (role, "postgres"), statement)?;
        answered += usize::from(found.status.success());
        // Estimates are the server's own.
        let is_plan = statement.starts_with("explain") && expected.status.success();
        let is_right = match is_plan {
            true => found.status.success(),
            false => text(&found) == text(expected),
        };
        if !is_right {
            wrong.push(format!("{role}: {statement}\n{}\n{}", text(&found), text(expected)));
        }
    }
    let found = all_asked(&|| psql(&served, &cluster))?;
    for ((role, told), found) in ROLES.iter().zip(&told).zip(&found) {
        for ((statement, told), found) in together.iter().zip(told).zip(found) {
            answered += usize::from(!found.contains("ERROR: "));
            if told != found {
                wrong.push(format!("{role}: {statement}\n{}", differences(found, told)));
            }
        }
    }
    for (statement, roles) in DENIED {
        for role in roles {
            let found = asked(psql(&served, &cluster), (role, "postgres"), statement)?;
            if !text(&found).starts_with("ERROR:  permission denied for function ") {
                wrong.push(format!("{role}: {statement}\n{}", text(&found)));
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    ensure!(answered > 1000, "{answered} were answered");
    databases(&cluster, &served)
}

/// Who may connect, and to what.
fn databases(cluster: &TestCluster, served: &Served) -> Result<()> {
    for (role, database, words) in [
        ("member", "private", None),
        ("granted", "private", None),
        ("postgres", "private", None),
        ("outsider", "private", Some("permission denied for database \"private\"")),
        ("apart", "private", Some("permission denied for database \"private\"")),
        ("reader", "private", Some("permission denied for database \"private\"")),
        ("limited", "postgres", Some("too many connections for role \"limited\"")),
        ("holders", "postgres", Some("role \"holders\" is not permitted to log in")),
    ] {
        let found = asked(psql(served, cluster), (role, database), "select 1")?;
        match words {
            None => ensure!(found.status.success(), "{role} {database}: {}", text(&found)),
            Some(words) => {
                ensure!(text(&found).contains(words), "{role} {database}: {}", text(&found))
            }
        }
    }
    // Other databases of the cluster by their names, which servers have nothing of, and what functions are called by libpq.
    for statement in ["select * from private.pg_catalog.pg_class", "\\lo_export 1 /dev/null"] {
        let found = asked(psql(served, cluster), ("reader", "postgres"), statement)?;
        ensure!(is_refused_here(&found), "{statement}: {}", text(&found));
    }
    Ok(())
}

#[test]
fn roles_read_what_they_may_read_on_the_server() -> Result<()> {
    let installs = PgInstall::spread();
    PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    each_of(&installs, check);
    Ok(())
}
