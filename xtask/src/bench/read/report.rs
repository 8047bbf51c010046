//! The result of `bench read`: what each claim comes to, every contestant's times, and the raw numbers.
//!
//! Kept under `runs/`. A quick run is no result: it lands beside the clusters instead.

use std::fmt::Write;

use serde_json::{Value, json};

use super::Bench;
use super::counted::Counted;
use super::rows::Race;
use super::turns::{Absence, ContestantResult, Raced};
use super::verdict::{Judged, words};
use crate::bench::artifact::named;
use crate::bench::figures::{self, ratio, spread};
use crate::bench::fio_writes;
use crate::bench::server;
use crate::bench::statistics::median;
use crate::bench::targets::Target;

const MIB: f64 = (1_u64 << 20) as f64;

const METHOD: &str = "\
How it was measured: the contestants of a race run in turns, on the very same files; a ratio is the fastest other's time \
over the subject's, the median over the turns, with an interval from order statistics. PostgreSQL is started for its \
turn and stopped after it; its time is psql's `\\timing` of one statement with `max_parallel_workers_per_gather = 0` and \
`jit = off`, in warm states after an untimed run of the same statement. Pagemill: the whole process, start included. \
Every answer is checked. Page cache: *as-written*, as the server left it when it wrote the table; *reread*, every file \
of the table dropped and read once from front to back; *cold*, dropped before each run (on the machine's own disk read once before that, as \
memory that a virtual machine's host took back is dear to get again), and asked of the kernel whether all of it is out. Rows in warm states run on one core unless they compare methods; cold ones may use all. *Little \
memory* is a control group with a quarter of the table and 16 MiB; *reread* there leaves what fits. The floor is a program \
that maps the table's files and touches one byte of each page, its own start left out; a count's ratio to it is the \
count's time over the floor's.";

/// The page.
pub(super) fn markdown(bench: &Bench) -> String {
    let quick = if bench.options.run.quick { " (quick: small tables, no result)" } else { "" };
    let mut page =
        format!("# Benchmark of reading: {}{quick}\n\n{METHOD}\n\n", bench.options.run.name);
    page += &claims(bench);
    page += "\n";
    page += &calls(&bench.counted);
    page += "\n## Contestants\n\n";
    page += &contestants(bench);
    page += "\n## Environment\n\n";
    for (name, value) in settings(bench).iter().chain(&bench.environment) {
        let _ = writeln!(page, "- {name}: {value}");
    }
    for (place, facts) in &bench.places {
        let facts: Vec<String> =
            facts.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let _ = writeln!(page, "- {place}: {}", facts.join("; "));
    }
    page
}

fn claims(bench: &Bench) -> String {
    let mut table = String::from(
        "| row | page cache | against, ms | subject, ms | ratio | target | verdict |\n\
         | --- | --- | ---: | ---: | ---: | ---: | --- |\n",
    );
    for raced in &bench.raced {
        for claim in &raced.race.claims {
            let Some(judged) = Judged::new(raced, claim) else { continue };
            let others: Vec<&ContestantResult> =
                claim.against.iter().filter_map(|index| raced.outcomes.get(*index)).collect();
            let _ = writeln!(
                table,
                "| {} | {} | {} | {} | {} | {} | {} |",
                claim.id,
                state(&raced.race),
                judged.reference.map_or("—".to_owned(), |reference| {
                    format!("{}: {}", reference.label, spread(&reference.times_ms))
                }),
                spread(&judged.subject.times_ms),
                ratio(&judged.ratios),
                claim.target.map_or("—".to_owned(), |target| target.to_string()),
                judged.verdict(&others),
            );
        }
    }
    table += "\nTimes: median (smallest–largest).\n";
    table
}

fn state(race: &Race) -> String {
    let little = if race.little_memory { ", little memory" } else { "" };
    format!("{}{little}", race.state.name())
}

fn calls(counted: &[Counted]) -> String {
    let mut table = String::from(
        "| row | flags | calls | units of blocks | calls for a unit | target | verdict |\n\
         | --- | --- | ---: | ---: | ---: | ---: | --- |\n",
    );
    for counted in counted {
        let (row, figure) = (&counted.row, counted.figure());
        let verdict = match &counted.absence {
            Some(absence) => words(absence),
            None => if counted.is_met() { "met" } else { "missed" }.to_owned(),
        };
        let present = counted.absence.is_none();
        let or_dash = |text: String| if present { text } else { "—".to_owned() };
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} of {} | {} | {:.3} to {:.3} | {verdict} |",
            row.id,
            row.flags.join(" "),
            or_dash(counted.calls.to_string()),
            or_dash(counted.units.to_string()),
            row.blocks,
            or_dash(format!("{figure:.3}")),
            row.range.0,
            row.range.1,
        );
    }
    table += "\nCounted by `--stats=json`, reads and seeks; those of counting an empty table are taken off.\n";
    table
}

fn contestants(bench: &Bench) -> String {
    let mut table = String::from(
        "| row | contestant | ms | MiB/s | from each device, MiB | note |\n\
         | --- | --- | ---: | ---: | --- | --- |\n",
    );
    for raced in &bench.raced {
        for outcome in raced.outcomes.iter().filter(|outcome| has_run(outcome)) {
            let devices: Vec<String> =
                outcome.device_bytes.iter().map(|b| format!("{:.0}", *b as f64 / MIB)).collect();
            let _ = writeln!(
                table,
                "| {} | {} | {} | {} | {} | {} |",
                raced.race.id,
                outcome.label,
                spread(&outcome.times_ms),
                rate(raced, outcome).map_or("—".to_owned(), |rate| format!("{rate:.0}")),
                if devices.is_empty() { "—".to_owned() } else { devices.join(" + ") },
                outcome.absence.as_ref().map(words).unwrap_or_default(),
            );
        }
    }
    table
}

/// Whether there is more to tell of a contestant than that it is not there.
fn has_run(outcome: &ContestantResult) -> bool {
    !outcome.times_ms.is_empty() || matches!(outcome.absence, Some(Absence::Failed(_)))
}

/// MiB of the table's main fork a second.
fn rate(raced: &Raced, outcome: &ContestantResult) -> Option<f64> {
    Some(raced.table_bytes as f64 / MIB / (median(&outcome.times_ms)? / 1000.0))
}

fn settings(bench: &Bench) -> Vec<(&'static str, String)> {
    let options = &bench.options;
    let tables =
        format!("t {} rows, bigtable {} rows, both frozen", options.rows, options.bigtable_rows);
    let mut settings = vec![
        ("tables", tables),
        ("repetitions", options.run.repetitions.to_string()),
        ("core of the rows of one core", options.core.to_string()),
        ("shared_buffers", options.sides.shared_buffers.clone()),
        ("server settings", server::SETTINGS.trim().replace('\n', ", ")),
    ];
    settings.extend(fio_writes::version().map(|version| ("fio", version)));
    if !bench.not_built.is_empty() {
        settings.push(("not built yet", bench.not_built.join("; ")));
    }
    settings
}

/// The raw numbers.
pub(super) fn raw(bench: &Bench) -> Value {
    json!({
        "name": bench.options.run.name,
        "environment": named(&bench.environment),
        "settings": named(&settings(bench)),
        "places": bench.places.iter()
            .map(|(place, facts)| json!({ "place": place, "facts": named(facts) }))
            .collect::<Vec<Value>>(),
        "races": bench.raced.iter().map(raw_race).collect::<Vec<Value>>(),
        "calls": bench.counted.iter().map(raw_calls).collect::<Vec<Value>>(),
    })
}

fn raw_race(raced: &Raced) -> Value {
    let race = &raced.race;
    json!({
        "row": race.id,
        "table": race.table.name(),
        "place": race.place.name(),
        "page_cache": race.state.name(),
        "little_memory": race.little_memory,
        "one_core": race.one_core,
        "table_bytes": raced.table_bytes,
        "contestants": raced.outcomes.iter().map(raw_outcome).collect::<Vec<Value>>(),
        "claims": race.claims.iter()
            .filter_map(|claim| Judged::new(raced, claim))
            .map(|judged| raw_claim(&judged))
            .collect::<Vec<Value>>(),
    })
}

fn raw_outcome(outcome: &ContestantResult) -> Value {
    json!({
        "contestant": outcome.label,
        "command": outcome.spelled.trim(),
        "times_ms": outcome.times_ms,
        "device_bytes": outcome.device_bytes,
        "absence": outcome.absence.as_ref().map(words),
    })
}

fn raw_claim(judged: &Judged<'_>) -> Value {
    json!({
        "claim": judged.claim.id,
        "subject": judged.subject.label,
        "against": judged.reference.map(|reference| &reference.label),
        "ratios": judged.ratios,
        "figure": figures::raw(&judged.ratios),
        "target": judged.claim.target.map(Target::bound),
        "of_floor": judged.claim.target.is_some_and(Target::is_of_floor),
        "verdict": judged.verdict(&[]),
    })
}

fn raw_calls(counted: &Counted) -> Value {
    json!({
        "row": counted.row.id,
        "flags": counted.row.flags.join(" "),
        "calls": counted.calls,
        "units": counted.units,
        "blocks_per_unit": counted.row.blocks,
        "target": counted.row.range,
        "absence": counted.absence.as_ref().map(words),
    })
}
