//! One table after the other: what `count` and `export` have in common.
//!
//! What fails for one of several tables is said at the end, and the others are done. What would
//! fail for all (a wrong option, an output that cannot be written) ends the work. Losses that
//! were skipped are named at the end, every one.

use std::collections::BTreeSet;

use anyhow::Result;
use pagemill_cluster::{Database, InUse};
use pagemill_engine::pattern::Pattern;
use pagemill_engine::{DamageLog, PatternTexts, Patterns, Progress, RowSource, Selected};
use pagemill_io::Spool;

use crate::failure::{
    Completion, complain, is_broken_pipe, is_output_error, is_usage, say, text_of,
};
use crate::progress::{ProgressDisplay, is_wanted};
use crate::session::Session;
use crate::session::stats::Work;
use pagemill_cli::table_arguments::SelectionArguments;

/// The tables that the flags choose.
pub(crate) struct Tables<'a> {
    pub(crate) sources: Vec<RowSource<'a>>,
    /// One table was asked for by its name.
    pub(crate) named_one: bool,
}

impl<'a> Tables<'a> {
    pub(crate) fn choose(
        database: &'a Database,
        selection: &SelectionArguments,
    ) -> Result<Tables<'a>> {
        let patterns = Patterns::parse(PatternTexts {
            tables: &selection.tables,
            excluded_tables: &selection.excluded_tables,
            schemas: &selection.schemas,
            excluded_schemas: &selection.excluded_schemas,
        })?;
        let mut selected = patterns.select(database)?;
        leave_out_unpopulated(&mut selected, &selection.tables)?;
        let sources = RowSource::all(database, &selected)?;
        Ok(Tables { sources, named_one: patterns.name_one() })
    }

    /// Does the work for each table, and tells the session how much it was.
    pub(crate) fn for_each(
        &self,
        session: &Session<'_>,
        mut job: impl FnMut(&RowSource<'_>, &mut Watch<'_>) -> Result<()>,
    ) -> Result<Completion> {
        let progress = Progress::default();
        let display = ProgressDisplay::start(self.pages(session)?, &progress);
        let mut report = FinalReport::default();
        let mut work = Work::default();
        let mut stopped_by = None;
        let mut told = BTreeSet::new();
        for source in &self.sources {
            display.aside(|| session.tell(|| description(source)));
            display.aside(|| tell_concurrency(session, source, &mut told));
            let mut damage = session.damage_log();
            let done = job(
                source,
                &mut Watch {
                    progress: &progress,
                    display: &display,
                    damage: &mut damage,
                    work: &mut work,
                },
            );
            work.pages = progress.pages();
            session.finish(&work);
            let done = done.and(report.losses(source, &damage));
            match done {
                Ok(()) => {}
                Err(error) if self.is_for_all(&error) => {
                    stopped_by = Some(error);
                    break;
                }
                Err(error) => report.failure(source, &error)?,
            }
        }
        drop(display);
        match (report.report(), stopped_by) {
            // What was found damaged until the reader went away stays found.
            (Ok(Completion::Incomplete), Some(error)) if is_broken_pipe(&error) => {
                Ok(Completion::Incomplete)
            }
            (outcome, stopped_by) => stopped_by.map_or(outcome, Err),
        }
    }

    fn is_for_all(&self, error: &anyhow::Error) -> bool {
        self.sources.len() == 1 || is_usage(error) || is_output_error(error)
    }

    /// How many pages there are to scan, if anybody will see it.
    fn pages(&self, session: &Session<'_>) -> Result<Option<u64>> {
        if !is_wanted(session.common().progress) {
            return Ok(None);
        }
        let pages = self.sources.iter().map(RowSource::blocks).sum::<Result<u64, _>>()?;
        Ok(Some(pages))
    }
}

/// A materialized view that was never filled has nothing to show. PostgreSQL refuses to read it,
/// and so it is refused where it is asked for by its name; a wildcard passes over it.
fn leave_out_unpopulated(selected: &mut Vec<Selected>, tables: &[String]) -> Result<()> {
    let patterns: Vec<Pattern> = tables
        .iter()
        .map(|text| Pattern::parse(text))
        .collect::<Result<_, _>>()
        .map_err(pagemill_engine::Error::from)?;
    let is_named = |one: &Selected| {
        let (schema, name) = (one.schema_utf8(), one.name_utf8());
        patterns.iter().filter_map(Pattern::is_literal).any(|(in_schema, literal)| {
            literal.as_bytes() == &*name && in_schema.is_none_or(|s| s.as_bytes() == &*schema)
        })
    };
    selected.retain(|one| {
        let kept = one.class.is_populated || is_named(one);
        if !kept {
            say(format!("{}: passed over: it has not been populated", one.display_name()));
        }
        kept
    });
    Ok(())
}

/// What work on a table reports to.
pub(crate) struct Watch<'a> {
    pub(crate) progress: &'a Progress,
    pub(crate) display: &'a ProgressDisplay,
    pub(crate) damage: &'a mut DamageLog,
    /// What was done so far, by the work on all tables.
    pub(crate) work: &'a mut Work,
}

/// Tells how many reads in flight the tablespaces are set to, and names what is wrong with their settings:
/// they change no result, so the work goes on without them. Nothing is told twice.
fn tell_concurrency(session: &Session<'_>, source: &RowSource<'_>, told: &mut BTreeSet<String>) {
    let mut once = |message: String, tell: &dyn Fn(&str)| {
        if !told.contains(&message) {
            tell(&message);
            told.insert(message);
        }
    };
    let on_request = |text: &str| session.tell(|| text.to_owned());
    if let Some(flag) = session.common().reading.effective_io_concurrency {
        let message = format!("effective_io_concurrency {flag}: --effective-io-concurrency");
        return once(message, &on_request);
    }
    for tablespace in source.tablespaces() {
        match source.database().tablespace_settings(tablespace) {
            Ok(settings) => {
                settings.problems.into_iter().for_each(|problem| once(problem, &|text| say(text)));
                let InUse { value, from } = settings.effective_io_concurrency;
                let message = format!("effective_io_concurrency {value}: {from}");
                once(message, &on_request);
            }
            Err(error) => {
                let message = format!("the settings of tablespaces are ignored: {error}");
                once(message, &|text| say(text));
            }
        }
    }
}

fn description(source: &RowSource<'_>) -> String {
    let name = source.selected().display_name();
    let parts: Vec<String> =
        source.parts().iter().map(|part| part.base.display().to_string()).collect();
    match parts.is_empty() {
        true => format!("{name}: no partitions"),
        false => format!("{name}: {}", parts.join(", ")),
    }
}

/// What is to be said at the end. It may be more than fits in memory.
#[derive(Default)]
struct FinalReport {
    lines: Spool,
}

impl FinalReport {
    fn failure(&mut self, source: &RowSource<'_>, error: &anyhow::Error) -> Result<()> {
        let (name, said) = (source.selected().display_name(), text_of(error));
        // That of a row begins with its table, which is a partition where the table has such.
        let is_named = said.strip_prefix(&name).is_some_and(|rest| rest.starts_with(": "));
        Ok(self.lines.push(&if is_named { said } else { format!("{name}: {said}") })?)
    }

    fn losses(&mut self, source: &RowSource<'_>, damage: &DamageLog) -> Result<()> {
        if damage.is_empty() {
            return Ok(());
        }
        let name = source.selected().display_name();
        for loss in damage.losses()? {
            self.lines.push(&format!("{name}: skipped: {}", loss?))?;
        }
        let losses = if damage.len() == 1 { "loss" } else { "losses" };
        let sum = format!("{name}: {} {losses}, the result is incomplete", damage.len());
        Ok(self.lines.push(&sum)?)
    }

    fn report(self) -> Result<Completion> {
        for line in self.lines.lines()? {
            complain(line?);
        }
        Ok(if self.lines.is_empty() { Completion::Done } else { Completion::Incomplete })
    }
}
