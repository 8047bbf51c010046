//! The result: the table of 2012, everybody's figures, and what the claims came to.
//!
//! A ratio is the other's time over ours, the median over the turns of each; targets are those of the tracker and
//! are not moved to fit a run.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::ContestantResult;
use super::contestants::{Contestant, FILL, Measured, STEPS};
use super::options::Options;
use crate::bench::artifact::{Entries, named};
use crate::bench::statistics::{median, range};

/// A claim, its figure and what it is held against.
struct Claim {
    what: &'static str,
    figure: Option<f64>,
    target: f64,
    against: String,
}

impl Claim {
    fn verdict(&self) -> &'static str {
        match self.figure {
            None => "not run",
            Some(figure) if figure >= self.target => "met",
            Some(_) => "missed",
        }
    }
}

impl ContestantResult {
    fn of<'a>(outcomes: &'a [Self], name: &str) -> Option<&'a Self> {
        outcomes.iter().find(|outcome| outcome.contestant.name() == name)
    }

    fn median_of(&self, figure: impl Fn(&Measured) -> f64) -> Option<f64> {
        median(&self.turns.iter().map(figure).collect::<Vec<_>>())
    }

    fn total(&self) -> Option<f64> {
        self.median_of(|turn| turn.write_ms + turn.sync_ms)
    }

    fn fragments(&self) -> Option<f64> {
        let told: Vec<f64> =
            self.turns.iter().filter_map(|turn| turn.fragments).map(|n| n as f64).collect();
        median(&told)
    }
}

fn claims(outcomes: &[ContestantResult]) -> Vec<Claim> {
    let total = |name: &str| ContestantResult::of(outcomes, name).and_then(ContestantResult::total);
    let fragments =
        |name: &str| ContestantResult::of(outcomes, name).and_then(ContestantResult::fragments);
    let fio = outcomes.iter().filter(|outcome| matches!(outcome.contestant, Contestant::Fio(_)));
    let best = fio
        .filter_map(|outcome| Some((outcome.total()?, outcome.contestant.name())))
        .min_by(|(one, _), (other, _)| one.total_cmp(other));
    let over = |other: Option<f64>, own: Option<f64>| Some(other? / own?);
    let claim = |what, figure, target, against: &str| Claim {
        what,
        figure,
        target,
        against: against.to_owned(),
    };
    let (best_ms, best_name) = best.unzip();
    vec![
        claim(
            "extending, against 8 kB writes with fdatasync",
            over(total("zeros blocks=1"), total("extension blocks=1")),
            10.0,
            "zeros blocks=1",
        ),
        claim(
            "extending and filling, durable at the end, against fio at best",
            over(best_ms, total(FILL)),
            0.9,
            best_name.as_deref().unwrap_or("fio"),
        ),
        claim(
            "pieces of the file, one writer",
            over(fragments("dd bs=1M"), fragments(FILL)),
            1.0,
            "dd bs=1M",
        ),
        claim(
            "pieces of the file, four writers",
            over(fragments("dd bs=1M, 4 at once"), fragments("fill writers=4")),
            1.0,
            "dd bs=1M, 4 at once",
        ),
    ]
}

/// The page.
pub(super) fn markdown(
    options: &Options,
    environment: &Entries,
    outcomes: &[ContestantResult],
) -> String {
    let mut page = format!("# Benchmark of extending: {}\n\n", options.run.name);
    let _ = writeln!(
        page,
        "A file of {} MiB, new in each turn; {} turns of each contestant, taken in turns, everything written back \
         before each. Times are medians in milliseconds: until the file has its size, and in the `fdatasync` of its \
         end.\n",
        options.blocks() / 128,
        options.run.repetitions
    );
    page += "| claim | against | ratio | target | verdict |\n| --- | --- | ---: | ---: | --- |\n";
    for claim in claims(outcomes) {
        let figure = claim.figure.map_or("—".to_owned(), |figure| format!("{figure:.2}×"));
        let Claim { what, target, against, .. } = &claim;
        let _ =
            writeln!(page, "| {what} | {against} | {figure} | ≥ {target}× | {} |", claim.verdict());
    }
    page += "\n## n blocks at a time\n\n";
    page += "| blocks | zeros: write | fdatasync | fallocate: write | fdatasync |\n";
    page += "| ---: | ---: | ---: | ---: | ---: |\n";
    for blocks in STEPS {
        let cell = |what: &str, figure: fn(&Measured) -> f64| {
            let outcome = ContestantResult::of(outcomes, &format!("{what} blocks={blocks}"));
            shown(outcome.and_then(|outcome| outcome.median_of(figure)))
        };
        let both = |what: &str| {
            format!("{} | {}", cell(what, |turn| turn.write_ms), cell(what, |turn| turn.sync_ms))
        };
        let _ = writeln!(page, "| {blocks} | {} | {} |", both("zeros"), both("fallocate"));
    }
    page += "\n## Everybody\n\n";
    page += "| contestant | ms (smallest–largest) | of it in the sync | write calls | extend calls | pieces | note |\n";
    page += "| --- | ---: | ---: | ---: | ---: | ---: | --- |\n";
    for outcome in outcomes {
        let _ = writeln!(page, "{}", line(outcome));
    }
    page += "\n## Environment\n\n";
    for (name, value) in environment {
        let _ = writeln!(page, "- {name}: {value}");
    }
    page
}

fn line(outcome: &ContestantResult) -> String {
    let totals: Vec<f64> = outcome.turns.iter().map(|turn| turn.write_ms + turn.sync_ms).collect();
    let span =
        range(&totals).map_or(String::new(), |(least, most)| format!(" ({least:.1}–{most:.1})"));
    let last = outcome.turns.last().cloned().unwrap_or_default();
    let count = |count: Option<u64>| count.map_or("—".to_owned(), |count| count.to_string());
    format!(
        "| {} | {}{span} | {} | {} | {} | {} | {} |",
        outcome.contestant.name(),
        shown(outcome.total()),
        shown(outcome.median_of(|turn| turn.sync_ms)),
        count(last.write_calls),
        count(last.extend_calls),
        outcome.fragments().map_or("—".to_owned(), |pieces| pieces.to_string()),
        outcome.failure.as_deref().unwrap_or_default().replace('\n', " "),
    )
}

fn shown(milliseconds: Option<f64>) -> String {
    milliseconds.map_or("—".to_owned(), |milliseconds| format!("{milliseconds:.1}"))
}

/// The raw numbers.
pub(super) fn raw(
    options: &Options,
    environment: &Entries,
    outcomes: &[ContestantResult],
) -> Value {
    let turn = |turn: &Measured| {
        json!({
            "write_ms": turn.write_ms,
            "sync_ms": turn.sync_ms,
            "write_calls": turn.write_calls,
            "extend_calls": turn.extend_calls,
            "fragments": turn.fragments,
        })
    };
    let contestant = |outcome: &ContestantResult| {
        json!({
            "contestant": outcome.contestant.name(),
            "turns": outcome.turns.iter().map(turn).collect::<Vec<_>>(),
            "failure": outcome.failure,
        })
    };
    let claim = |claim: &Claim| {
        json!({
            "claim": claim.what,
            "against": claim.against,
            "ratio": claim.figure,
            "target": claim.target,
            "verdict": claim.verdict(),
        })
    };
    json!({
        "blocks": options.blocks(),
        "repetitions": options.run.repetitions,
        "environment": named(environment),
        "claims": claims(outcomes).iter().map(claim).collect::<Vec<_>>(),
        "contestants": outcomes.iter().map(contestant).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fio_writes::FioWrites;

    fn outcome(name: &str, contestant: Contestant, ms: &[f64], fragments: u64) -> ContestantResult {
        assert_eq!(contestant.name(), name);
        let turn = |ms: &f64| Measured {
            write_ms: *ms,
            fragments: Some(fragments),
            ..Measured::default()
        };
        ContestantResult { contestant, turns: ms.iter().map(turn).collect(), failure: None }
    }

    #[test]
    fn filling_is_held_against_the_fastest_fio_and_pieces_against_dd() {
        let fio = |depth| Contestant::Fio(FioWrites { engine: "psync", depth, direct: true });
        let ours = Contestant::Ours(FILL.to_owned());
        let outcomes = [
            outcome(FILL, ours, &[100.0, 90.0, 120.0], 4),
            outcome("fio psync 1m depth 1 direct", fio(1), &[300.0], 9),
            outcome("fio psync 1m depth 8 direct", fio(8), &[95.0], 9),
            outcome("dd bs=1M", Contestant::Dd { writers: 1 }, &[1.0], 2),
        ];
        let claims = claims(&outcomes);
        let figures: Vec<Option<f64>> = claims.iter().map(|claim| claim.figure).collect();
        assert_eq!(figures, [None, Some(0.95), Some(0.5), None]);
        let verdicts: Vec<&str> = claims.iter().map(Claim::verdict).collect();
        assert_eq!(verdicts, ["not run", "met", "missed", "not run"]);
    }
}
