//! What roles may read that are no superusers: the files answer where the server answered, and refuse where it refused, in its words.
//!
//! Where more is refused than by the server, it is on a list here. psql is the client, one session for each statement.

mod support;

use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::versions::each_of;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use support::Served;

const OBJECTS: &str = include_str!("rights/objects.sql");

const ROLES: [&str; 8] =
    ["member", "apart", "reader", "outsider", "maker", "passing", "granted", "postgres"];

const ASKED: [&str; 74] = [
    "select * from open.free",
    "select * from open.kept",
    "select * from only open.kept",
    "select 1 from open.kept where false",
    "select (select count(*) from open.kept)",
    "select 1 where exists (select 1 from open.kept)",
    "with k as (select * from open.kept) select 1 from k",
    "select * from open.free f join open.kept k on f.i = k.i",
    "select i from open.free union all select i from open.kept order by 1",
    "explain select * from open.kept",
    "copy open.kept to stdout",
    "copy (select * from open.kept) to stdout",
    "prepare p as select * from open.kept; execute p",
    "begin; declare c cursor for select * from open.kept",
    "select * from open.ours",
    "select * from open.written",
    "select * from shut.t",
    "set search_path = shut; select * from t",
    "set search_path = shut, open; select current_schemas(false), count(*) from free",
    "select * from open.over",
    "select * from open.over_twice",
    "select * from open.kept_view",
    "select * from open.of_kept",
    "select a from open.cols",
    "select b from open.cols",
    "select * from open.cols",
    "select c.* from open.cols c",
    "select (c).a from open.cols c",
    "select (c).b from open.cols c",
    "select count(*) from open.cols",
    "select 1 from open.cols",
    "select a from open.cols where b = 2",
    "select a from open.cols order by b",
    "select a from open.cols group by a having max(b) > 1",
    "select sum(a) over (order by b) from open.cols",
    "select x from open.cols c (x, y)",
    "select y from open.cols c (x, y)",
    "select a from (select a, b from open.cols) s",
    "with c as (select a, b from open.cols) select a from c",
    "select c.a, d.a from open.cols c join open.cols d using (a)",
    "select c.a from open.cols c join open.cols d using (b)",
    "select 1 from open.cols c natural join open.cols d",
    "select (select b) from open.cols",
    "select i from open.free f where exists (select 1 from open.cols c where c.b > f.i)",
    "select a from only open.cols",
    "copy open.cols to stdout",
    "copy open.cols (a) to stdout",
    "copy open.cols (b) to stdout",
    "select name, length(secret) from open.cols_keyed group by id",
    "select name from open.cols_keyed",
    "select p, q from open.cols_view",
    "select q from open.cols_view",
    "select p from open.cols_view; select subname from pg_subscription; select subconninfo from pg_subscription",
    "select * from open.guarded",
    "select * from open.guarded_view",
    "select * from open.invoked",
    "select * from open.barrier",
    "select * from open.peeks",
    "select * from open.rowed",
    "select * from open.stored",
    "select last_value from open.numbers",
    "select * from open.parent",
    "select * from open.child",
    "select * from open.parts",
    "select * from open.part",
    "select * from open.made",
    "select * from open.weak",
    "select * from open.own",
    "select * from open.made_guarded",
    "select * from open.made_forced",
    "select count(*) > 0 from pg_authid",
    "select count(*) > 0 from pg_roles; select count(*) from pg_largeobject; select count(*) > 0 from pg_statistic",
    "select count(*) > 0 from pg_shadow",
    "select current_user, session_user; show is_superuser",
];

/// What is refused here and not by the server, for whom.
const REFUSED: [(&str, &[&str]); 5] = [
    ("select * from open.guarded", &["member", "apart", "reader", "outsider", "maker", "granted"]),
    ("select * from open.barrier", &["member", "apart", "outsider", "maker", "passing", "granted"]),
    ("select * from open.made_forced", &["reader", "maker"]),
    ("select * from open.made_guarded", &["reader"]),
    ("select has_table_privilege('open.kept', 'select')", &["reader", "outsider"]),
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

/// What both print, without places in the statement, functions around the fault and names that are near.
fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_told = |line: &&str| {
        let beside = ["LINE ", "HINT: ", "CONTEXT: "];
        !beside.iter().any(|begin| line.starts_with(begin)) && line.trim() != "^"
    };
    let errors: Vec<&str> = errors.lines().filter(is_told).collect();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), errors.join("\n"))
}

fn is_refused_here(output: &Output) -> bool {
    !output.status.success() && text(output).contains("not supported here")
}

fn check(install: &PgInstall) -> Result<()> {
    let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
    // Views run as who asks from 15 on.
    let objects = match install.major {
        14 => OBJECTS.replace("with (security_invoker = true)", ""),
        _ => OBJECTS.to_owned(),
    };
    let script = cluster.root().join("objects.sql");
    std::fs::write(&script, objects)?;
    cluster.psql_file("postgres", &script, &[])?;
    let cases = || {
        let listed = REFUSED
            .iter()
            .flat_map(|(statement, roles)| roles.iter().map(|role| (*role, *statement)));
        ROLES.iter().flat_map(|role| ASKED.iter().map(|asked| (*role, *asked))).chain(listed)
    };
    let mut expected = Vec::new();
    for (role, statement) in cases() {
        expected.push(asked(cluster.psql_command("postgres"), (role, "postgres"), statement)?);
    }
    cluster.stop()?;
    let served = Served::start(&cluster, &[])?;
    let (mut answered, mut wrong) = (0, Vec::new());
    for ((role, statement), expected) in cases().zip(&expected) {
        let found = asked(psql(&served, &cluster), (role, "postgres"), statement)?;
        answered += usize::from(found.status.success());
        let is_listed = REFUSED.iter().any(|(of, roles)| *of == statement && roles.contains(&role));
        // Estimates are the server's own.
        let is_plan = statement.starts_with("explain") && expected.status.success();
        let is_right = match is_listed {
            true => is_refused_here(&found),
            false if is_plan => found.status.success(),
            // A superuser could read the table itself, so who owns the view is not asked.
            false if role == "postgres" && statement.ends_with("open.weak") => {
                found.status.success()
            }
            false => text(&found) == text(expected),
        };
        if !is_right {
            wrong.push(format!("{role}: {statement}\n{}\n{}", text(&found), text(expected)));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    ensure!(answered > 100, "{answered} were answered");
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
