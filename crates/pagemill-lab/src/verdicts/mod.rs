//! What holds of what the documents claim, by the figures of one run.
//!
//! Each claim names the cells it is about, what it says of them, and its figure; whether it holds comes from the intervals
//! of [`compare`](crate::statistics::compare), never from one number.
//!
//! | outcome | when |
//! | --- | --- |
//! | holds | everything that could be measured is as claimed, and within reach of the figure that was claimed |
//! | holds in part | some of it is; or the direction is right and the figure is not |
//! | does not hold | none of it is, or the opposite was seen |
//! | not seen | the intervals are too wide to say |
//! | not measured | the cells were refused, left out, or the run ended before them |
//!
//! Invariants: verdicts read [`Results`] and nothing else, so that results that were kept give the same; there is one for each
//! claim about an experiment of the run, in the order of the documents.

mod copying;
mod extending;
mod finding;
mod judge;
mod mapping;
mod positional_reads;
mod read_ahead;
#[cfg(test)]
mod tests;

use crate::results::{Results, Verdict};
use finding::Finding;
use judge::Judge;

/// Something that a document says.
struct Claim {
    /// As [`Verdict::id`].
    id: &'static str,
    /// As [`Verdict::claim`].
    claim: &'static str,
    /// What is known to stand in the way, where it does not hold.
    otherwise: &'static str,
    /// Looks at what was measured.
    judge: fn(&Judge<'_>) -> Vec<Finding>,
}

/// A document with its claims, all about one or several experiments.
struct Document {
    /// As [`Verdict::document`].
    name: &'static str,
    /// The experiments, each with the claims about it.
    parts: &'static [(&'static str, &'static [Claim])],
}

/// All documents, oldest numbers first.
const DOCUMENTS: [&Document; 5] = [
    &positional_reads::DOCUMENT,
    &read_ahead::DOCUMENT,
    &mapping::DOCUMENT,
    &copying::DOCUMENT,
    &extending::DOCUMENT,
];

/// The verdicts on all claims about experiments that were run.
pub fn verdicts(results: &Results) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for document in DOCUMENTS {
        for (experiment, claims) in document.parts {
            if results.experiment(experiment).is_none() {
                continue;
            }
            let judge = Judge { results, experiment };
            verdicts.extend(claims.iter().map(|claim| claim.verdict(document.name, &judge)));
        }
    }
    verdicts
}

impl Claim {
    fn verdict(&self, document: &str, judge: &Judge<'_>) -> Verdict {
        let told = finding::tell((self.judge)(judge), self.otherwise);
        Verdict {
            id: self.id.into(),
            document: document.into(),
            claim: self.claim.into(),
            measured: told.measured,
            outcome: told.outcome,
            why: told.why,
            evidence: told.evidence,
        }
    }
}
