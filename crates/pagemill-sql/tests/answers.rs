//! The program beside a server: the same statements asked of both, on the same tables.
//!
//! `answered.sql`, `rows_of_functions.sql`, `sql_functions.sql` (which calls what `functions.sql` makes), `system_columns.sql`,
//! `rows_as_values.sql`, `lateral.sql`, `json_path_searches.sql`, `date_templates.sql`, `json_records.sql`, `json_constructors.sql`,
//! `text_search.sql`, `ranges.sql`, `small_types.sql` and `small_things.sql` have what must come out alike to the character, as psql prints it, errors included; `refused.sql` what must be
//! refused and not answered. A statement that comes to be supported moves from the one to the other.

use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::versions::each_of;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, skipped};

const TABLES: &str = include_str!("answers/tables.sql");
const FUNCTIONS: &str = include_str!("answers/functions.sql");
const OBJECTS: &str = include_str!("information_schema/objects.sql");
const ANSWERED: &str = include_str!("answers/answered.sql");
const ROWS_OF_FUNCTIONS: &str = include_str!("answers/rows_of_functions.sql");
const SQL_FUNCTIONS: &str = include_str!("answers/sql_functions.sql");
const SYSTEM_COLUMNS: &str = include_str!("answers/system_columns.sql");
const ROWS_AS_VALUES: &str = include_str!("answers/rows_as_values.sql");
const LATERAL: &str = include_str!("answers/lateral.sql");
const TEXT_SEARCH: &str = include_str!("answers/text_search.sql");
const JSON_PATH_SEARCHES: &str = include_str!("answers/json_path_searches.sql");
const DATE_TEMPLATES: &str = include_str!("answers/date_templates.sql");
const RANGES: &str = include_str!("answers/ranges.sql");
const JSON_CONSTRUCTORS: &str = include_str!("answers/json_constructors.sql");
const JSON_RECORDS: &str = include_str!("answers/json_records.sql");
const SMALL_THINGS: &str = include_str!("answers/small_things.sql");
const SMALL_TYPES: &str = include_str!("answers/small_types.sql");
const SMALL_TYPES_18: &str = include_str!("answers/small_types_18.sql");
const REFUSED: &str = include_str!("answers/refused.sql");

/// A running server, and a stopped one with the same files.
struct Both {
    server: TestCluster,
    stopped: TestCluster,
    _scratch: tempfile::TempDir,
}

impl Both {
    fn new() -> Result<Self> {
        Self::of(&PgInstall::find(15).context("no PostgreSQL 15")?)
    }

    fn of(install: &PgInstall) -> Result<Self> {
        let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
        let mut server = TestCluster::create(install, &options)?;
        for made in [TABLES, OBJECTS, FUNCTIONS] {
            server.psql("postgres", made)?;
        }
        server.stop()?;
        let scratch = tempfile::tempdir()?;
        let stopped = server.copy_to(&scratch.path().join("copy"))?;
        server.start()?;
        Ok(Self { server, stopped, _scratch: scratch })
    }

    fn asked(&self, statement: &str) -> Result<Output> {
        let mut psql = self.server.psql_command("postgres");
        psql.args(["-X", "-q", "-P", "format=aligned", "-P", "tuples_only=off", "-c", statement]);
        psql.env("PGTZ", "UTC").env("PGDATESTYLE", "ISO, MDY");
        Ok(psql.output()?)
    }

    fn answered(&self, statement: &str) -> Result<Output> {
        let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
        program
            .arg("sql")
            .arg("-D")
            .arg(self.stopped.data_dir())
            .args(["-d", "postgres", statement]);
        Ok(program.output()?)
    }
}

fn statements(text: &str) -> impl Iterator<Item = &str> {
    let text = text.split_once('\n').map_or("", |(_, rest)| rest);
    text.split(";\n").map(str::trim).filter(|statement| !statement.is_empty())
}

/// The first line of an error without what only one of both programs puts around it.
fn message(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().next().unwrap_or_default();
    let line = line.trim_start_matches("ERROR:").trim_start_matches("pagemill:").trim();
    line.split(", at line ").next().unwrap_or_default().to_owned()
}

/// Rows without an order are compared without one.
fn comparable(statement: &str, output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if statement.to_lowercase().contains("order by") {
        return text;
    }
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

#[test]
fn what_is_answered_is_what_the_server_answers() -> Result<()> {
    let both = Both::new()?;
    let texts = [ANSWERED, ROWS_OF_FUNCTIONS, SQL_FUNCTIONS];
    compare(&both, texts.into_iter().flat_map(statements))
}

#[test]
fn what_names_rows_and_their_places_is_answered_as_the_server_answers() -> Result<()> {
    let both = Both::new()?;
    let texts = [SYSTEM_COLUMNS, ROWS_AS_VALUES, LATERAL, JSON_PATH_SEARCHES, SMALL_THINGS];
    compare(&both, texts.into_iter().flat_map(statements))
}

#[test]
fn what_is_made_of_values_is_answered_as_the_server_answers() -> Result<()> {
    let texts = [DATE_TEMPLATES, JSON_RECORDS, TEXT_SEARCH, RANGES, SMALL_TYPES];
    compare(&Both::new()?, texts.into_iter().flat_map(statements))
}

#[test]
fn forms_of_sql_json_are_answered_as_the_server_answers() {
    let mut installs = PgInstall::spread();
    installs.retain(|install| install.major >= 17);
    each_of(&installs, |install| compare(&Both::of(install)?, statements(JSON_CONSTRUCTORS)));
}

#[test]
fn small_types_of_18_are_answered_as_it_answers() -> Result<()> {
    match PgInstall::find(18) {
        Some(install) => compare(&Both::of(&install)?, statements(SMALL_TYPES_18)),
        None => {
            skipped("statements on types of PostgreSQL 18: it is not here");
            Ok(())
        }
    }
}

#[test]
fn every_view_of_information_schema_has_the_rows_of_the_server() {
    each_of(&PgInstall::spread(), |install| {
        let both = Both::of(install)?;
        let names = both.server.psql(
            "postgres",
            "select relname from pg_class where relnamespace = 'information_schema'::regnamespace and relkind = 'v' order by 1",
        )?;
        ensure!(names.lines().count() > 60, "they are listed: {names}");
        let asked: Vec<String> =
            names.lines().map(|name| format!("select * from information_schema.{name}")).collect();
        compare(&both, asked.iter().map(String::as_str))
    });
}

/// Both say the same of each statement.
fn compare<'s>(both: &Both, statements: impl Iterator<Item = &'s str>) -> Result<()> {
    let mut wrong = Vec::new();
    for statement in statements {
        let (server, ours) = (both.asked(statement)?, both.answered(statement)?);
        let same = server.status.success() == ours.status.success()
            && message(&server) == message(&ours)
            && comparable(statement, &server) == comparable(statement, &ours);
        if !same {
            wrong.push(format!(
                "{statement}\n  server: {}{}\n  here: {}{}",
                String::from_utf8_lossy(&server.stdout),
                message(&server),
                String::from_utf8_lossy(&ours.stdout),
                message(&ours)
            ));
        }
    }
    ensure!(wrong.is_empty(), "{} statements:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

#[test]
fn what_is_not_known_is_refused() -> Result<()> {
    let both = Both::new()?;
    for statement in statements(REFUSED) {
        let ours = both.answered(statement)?;
        ensure!(!ours.status.success() && ours.stdout.is_empty(), "{statement}: answered");
        let said = message(&ours);
        ensure!(said.contains("is not supported here"), "{statement}: {said}");
    }
    Ok(())
}
