//! The database that PostgreSQL's own regression suite leaves behind, dumped from its files: 440,000 lines, to the byte.
//!
//! The suite's statements are PostgreSQL's, and are not kept here: `ci/fetch-regression-suite.sh` brings them from Debian's source
//! package, or `PAGEMILL_REGRESSION_SUITE` names a directory with `sql`, `data` and `parallel_schedule`. What needs the suite's own
//! C functions fails in it, as they are in no package.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, is_before_15_20, skipped};

const DATABASE: &str = "regression";

/// Where the suite is: not by a link in the home, which the server's account may not look into.
fn suite() -> Option<PathBuf> {
    let named = std::env::var_os("PAGEMILL_REGRESSION_SUITE").map(PathBuf::from);
    let cached = || {
        let home = std::env::var_os("HOME")?;
        Some(Path::new(&home).join(".cache/pagemill-test/regress15"))
    };
    let suite = named.or_else(cached)?.canonicalize().ok()?;
    suite.join("parallel_schedule").exists().then_some(suite)
}

/// Runs the suite's scripts in their order. Many of their statements fail, as they are meant to.
fn run_suite(cluster: &TestCluster, suite: &Path) -> Result<()> {
    let built = cluster.root().join("built");
    cluster.account().create_dir(&built)?;
    cluster.account().create_dir(&built.join("results"))?;
    cluster.psql("postgres", &format!("create database {DATABASE} template template0"))?;
    let schedule = std::fs::read_to_string(suite.join("parallel_schedule"))?;
    let tests = schedule.lines().filter_map(|line| line.strip_prefix("test:"));
    for test in tests.flat_map(str::split_whitespace) {
        let mut psql = cluster.psql_command(DATABASE);
        psql.args(["-v", "ON_ERROR_STOP=0", "-v", "HIDE_TABLEAM=on", "-f"]);
        psql.arg(suite.join(format!("sql/{test}.sql")));
        psql.env("PG_ABS_SRCDIR", suite).env("PG_ABS_BUILDDIR", &built);
        psql.env("PG_LIBDIR", "/nonexistent").env("PG_DLSUFFIX", ".so");
        psql.env("PGTZ", "PST8PDT").env("PGDATESTYLE", "Postgres, MDY");
        psql.current_dir(&built).stdout(Stdio::null()).stderr(Stdio::null());
        psql.status().with_context(|| test.to_owned())?;
    }
    Ok(())
}

fn served(cluster: &TestCluster) -> Command {
    let mut served = Command::new(env!("CARGO_BIN_EXE_pagemill-serve"));
    served.args(["-q", "serve", "-D"]).arg(cluster.data_dir()).arg("--exec");
    served
}

#[test]
fn pg_dump_writes_what_the_regression_suite_leaves() -> Result<()> {
    let Some(suite) = suite() else {
        skipped("PostgreSQL's regression suite is not here: ci/fetch-regression-suite.sh");
        return Ok(());
    };
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    if is_before_15_20(&cluster)? {
        skipped("a server before 15.20, which writes aliases in rules in another way");
        return Ok(());
    }
    run_suite(&cluster, &suite)?;
    let expected = super::dump(super::server_dumper(&cluster).arg(DATABASE).output()?)?;
    ensure!(expected.lines().count() > 400_000, "there is much to compare");
    cluster.stop()?;
    let mut dumper = served(&cluster);
    dumper.arg(super::dumper(&install)).arg(DATABASE);
    super::same_lines(&super::dump(dumper.output()?)?, &expected)
}
