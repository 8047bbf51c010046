//! The program beside a server: the same statements asked of both, on the same tables.
//!
//! The files of `answers/` have what must come out alike to the character, as psql prints it, errors included (`sql_functions.sql`
//! calls what `functions.sql` makes; those with a number in their names are of versions from that on); `refused.sql` what must be
//! refused and not answered. A statement that comes to be supported moves from the one to the other.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, ensure};
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
const TEXT_DICTIONARIES: &str = include_str!("answers/text_dictionaries.sql");
const JSON_PATH_SEARCHES: &str = include_str!("answers/json_path_searches.sql");
const WINDOWS: &str = include_str!("answers/windows.sql");
const WINDOWS_18: &str = include_str!("answers/windows_18.sql");
const DATE_TEMPLATES: &str = include_str!("answers/date_templates.sql");
const RANGES: &str = include_str!("answers/ranges.sql");
const JSON_CONSTRUCTORS: &str = include_str!("answers/json_constructors.sql");
const JSON_QUERIES: &str = include_str!("answers/json_queries.sql");
const JSON_RECORDS: &str = include_str!("answers/json_records.sql");
const SMALL_THINGS: &str = include_str!("answers/small_things.sql");
const SMALL_TYPES: &str = include_str!("answers/small_types.sql");
const ENDLESS_INTERVALS: &str = include_str!("answers/endless_intervals.sql");
const SMALL_TYPES_18: &str = include_str!("answers/small_types_18.sql");
const SYNTAX_FORMS: &str = include_str!("answers/syntax_forms.sql");
const SYNTAX_FORMS_17: &str = include_str!("answers/syntax_forms_17.sql");
const STATEMENT_FORMS: &str = include_str!("answers/statement_forms.sql");
const STATEMENT_FORMS_17: &str = include_str!("answers/statement_forms_17.sql");
const MISSING_FUNCTIONS: &str = include_str!("answers/missing_functions.sql");
const MISSING_FUNCTIONS_18: &str = include_str!("answers/missing_functions_18.sql");
const ROW_VALUES: &str = include_str!("answers/row_values.sql");
const CATALOG_FUNCTIONS: &str = include_str!("answers/catalog_functions.sql");
const CATALOG_FUNCTIONS_18: &str = include_str!("answers/catalog_functions_18.sql");
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

    /// What the server says of each.
    fn asked(&self, statements: &[&str]) -> Result<Vec<Said>> {
        let mut psql = self.server.psql_command("postgres");
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=0"]);
        psql.args(["-P", "format=aligned", "-P", "tuples_only=off"]);
        psql.env("PGTZ", "UTC").env("PGDATESTYLE", "ISO, MDY");
        said(psql, statements)
    }

    /// What the program says of one that no shell knows the end of.
    fn answered_alone(&self, statement: &str) -> Result<Said> {
        let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
        program.arg("sql").arg("-D").arg(self.stopped.data_dir()).args(["-d", "postgres"]);
        let output = program.arg(statement).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Said { rows: text(&output.stdout), errors: text(&output.stderr) })
    }

    /// What the program says of each.
    fn answered(&self, statements: &[&str]) -> Result<Vec<Said>> {
        let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
        program.arg("sql").arg("-D").arg(self.stopped.data_dir()).args(["-d", "postgres"]);
        said(program, statements)
    }
}

/// What is printed of a statement.
struct Said {
    rows: String,
    errors: String,
}

impl Said {
    /// Whether an error is told, by either program, and not only a notice.
    fn has_failed(&self) -> bool {
        let is_error = |line: &str| line.starts_with("ERROR:") || line.starts_with("pagemill:");
        self.errors.lines().any(is_error)
    }
}

/// Stands between what is said of two statements.
const BETWEEN: &str = "---- the next statement ----";

/// What a shell prints of each statement, all of which it reads from its standard input.
fn said(mut shell: Command, statements: &[&str]) -> Result<Vec<Said>> {
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = shell.spawn()?;
    let mut input = running.stdin.take().context("its input")?;
    let script: String = statements
        .iter()
        .map(|statement| format!("{statement};\n\\echo {BETWEEN}\n\\warn {BETWEEN}\n"))
        .collect();
    let writing = std::thread::spawn(move || input.write_all(script.as_bytes()));
    let output = running.wait_with_output()?;
    writing.join().map_err(|_| anyhow!("the writer panicked"))??;
    let parts = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.split(&format!("{BETWEEN}\n")).map(str::to_owned).collect()
    };
    let (rows, errors) = (parts(&output.stdout), parts(&output.stderr));
    let expected = statements.len() + 1;
    ensure!(
        rows.len() == expected && errors.len() == expected,
        "{} and {} parts of {expected}",
        rows.len(),
        errors.len()
    );
    let mut all: Vec<Said> =
        rows.into_iter().zip(errors).map(|(rows, errors)| Said { rows, errors }).collect();
    all.pop();
    Ok(all)
}

fn statements(text: &str) -> impl Iterator<Item = &str> {
    let text = text.split_once('\n').map_or("", |(_, rest)| rest);
    text.split(";\n").map(str::trim).filter(|statement| !statement.is_empty())
}

/// The first line of an error without what only one of both programs puts around it.
fn message(said: &Said) -> String {
    let line = said.errors.lines().next().unwrap_or_default();
    let line = line.trim_start_matches("ERROR:").trim_start_matches("pagemill:").trim();
    line.split(", at line ").next().unwrap_or_default().to_owned()
}

/// Rows without an order are compared without one.
fn comparable(statement: &str, said: &Said) -> String {
    if statement.to_lowercase().contains("order by") {
        return said.rows.clone();
    }
    let mut lines: Vec<&str> = said.rows.lines().collect();
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
    let texts =
        [SYSTEM_COLUMNS, ROWS_AS_VALUES, LATERAL, JSON_PATH_SEARCHES, SMALL_THINGS, WINDOWS];
    compare(&both, texts.into_iter().flat_map(statements))
}

#[test]
fn what_is_made_of_values_is_answered_as_the_server_answers() -> Result<()> {
    let of_types = [DATE_TEMPLATES, JSON_RECORDS, RANGES, SMALL_TYPES, MISSING_FUNCTIONS];
    let of_texts = [TEXT_SEARCH, TEXT_DICTIONARIES, CATALOG_FUNCTIONS];
    compare(&Both::new()?, of_types.into_iter().chain(of_texts).flat_map(statements))
}

#[test]
fn forms_of_sql_json_are_answered_as_the_server_answers() {
    let mut installs = PgInstall::spread();
    installs.retain(|install| install.major >= 17);
    each_of(&installs, |install| {
        let both = Both::of(install)?;
        compare(&both, statements(JSON_CONSTRUCTORS).chain(statements(JSON_QUERIES)))
    });
}

#[test]
fn intervals_without_end_are_answered_as_the_server_answers() {
    let mut installs = PgInstall::spread();
    installs.retain(|install| install.major >= 17);
    each_of(&installs, |install| compare(&Both::of(install)?, statements(ENDLESS_INTERVALS)));
}

#[test]
fn forms_of_syntax_are_answered_as_the_server_answers() {
    let installs = PgInstall::spread();
    each_of(&installs, |install| {
        let both = Both::of(install)?;
        let newer = match install.major >= 17 {
            true => [SYNTAX_FORMS_17, STATEMENT_FORMS_17],
            false => ["", ""],
        };
        let all = [SYNTAX_FORMS, STATEMENT_FORMS, ROW_VALUES].into_iter().chain(newer);
        compare(&both, all.flat_map(statements))
    });
}

#[test]
fn what_18_alone_has_is_answered_as_it_answers() -> Result<()> {
    let small = [SMALL_TYPES_18, MISSING_FUNCTIONS_18, WINDOWS_18];
    let texts = small.into_iter().chain([CATALOG_FUNCTIONS, CATALOG_FUNCTIONS_18]);
    match PgInstall::find(18) {
        Some(install) => compare(&Both::of(&install)?, texts.flat_map(statements)),
        None => {
            skipped("statements on what PostgreSQL 18 alone has: it is not here");
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
    let statements: Vec<&str> = statements.collect();
    let (server, ours) = (both.asked(&statements)?, both.answered(&statements)?);
    let mut wrong = Vec::new();
    for ((statement, server), ours) in statements.iter().zip(&server).zip(&ours) {
        let same = server.has_failed() == ours.has_failed()
            && message(server) == message(ours)
            && comparable(statement, server) == comparable(statement, ours);
        if !same {
            wrong.push(format!(
                "{statement}\n  server: {}{}\n  here: {}{}",
                server.rows,
                message(server),
                ours.rows,
                message(ours)
            ));
        }
    }
    ensure!(wrong.is_empty(), "{} statements:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

#[test]
fn what_is_not_known_is_refused() -> Result<()> {
    let both = Both::new()?;
    const OPEN: &str = "select 1 in (select 2";
    let refused: Vec<&str> = statements(REFUSED).collect();
    let mut all = both.answered(&refused)?;
    all.push(both.answered_alone(OPEN)?);
    for (statement, ours) in refused.iter().chain([&OPEN]).zip(all) {
        ensure!(ours.rows.is_empty() && !ours.errors.is_empty(), "{statement}: answered");
        let said = message(&ours);
        ensure!(said.contains("is not supported here"), "{statement}: {said}");
    }
    Ok(())
}
