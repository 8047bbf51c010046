//! What holds of what was claimed on PostgreSQL's mailing lists, by the figures of one run.
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
//! Invariants: verdicts read [`Results`] and nothing else, so that results that were kept give the same; a verdict on this
//! storage never rests on a model, and one on a model names it; there is a verdict for each claim about an experiment of the
//! run, or two where both were measured, in the order of the messages.

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

/// Something that a message says.
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

/// A message with its claims, all about one or several experiments.
struct Document {
    /// As [`Verdict::document`].
    name: &'static str,
    /// As [`Verdict::link`].
    link: Option<&'static str>,
    /// The experiments, each with the claims about it.
    parts: &'static [(&'static str, &'static [Claim])],
}

/// All messages, in the order in which their claims are listed.
const DOCUMENTS: [&Document; 5] = [
    &positional_reads::DOCUMENT,
    &read_ahead::DOCUMENT,
    &mapping::DOCUMENT,
    &copying::DOCUMENT,
    &extending::DOCUMENT,
];

/// As [`Verdict::model`], of the one model there is.
const MODEL: &str = "two disks of 2009";

/// The verdicts on all claims about experiments that were run.
pub fn verdicts(results: &Results) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for document in DOCUMENTS {
        for (experiment, claims) in document.parts {
            if results.experiment(experiment).is_none() {
                continue;
            }
            let judge = Judge { results, experiment };
            verdicts.extend(claims.iter().flat_map(|claim| claim.verdicts(document, &judge)));
        }
    }
    verdicts
}

impl Claim {
    /// The verdict on this storage, and the one on a model where that was measured.
    fn verdicts(&self, document: &Document, judge: &Judge<'_>) -> Vec<Verdict> {
        let (modeled, real): (Vec<_>, Vec<_>) =
            (self.judge)(judge).into_iter().partition(|finding| finding.is_of_model);
        let model = (!modeled.is_empty()).then(|| self.verdict(document, modeled, true));
        let real =
            (!real.is_empty() || model.is_none()).then(|| self.verdict(document, real, false));
        real.into_iter().chain(model).collect()
    }

    fn verdict(&self, document: &Document, findings: Vec<Finding>, is_of_model: bool) -> Verdict {
        let summed = finding::sum_up(findings, self.otherwise);
        Verdict {
            id: if is_of_model { format!("{}-model", self.id) } else { self.id.into() },
            document: document.name.into(),
            link: document.link.map(str::to_owned),
            model: is_of_model.then(|| MODEL.to_owned()),
            claim: self.claim.into(),
            measured: summed.measured,
            outcome: summed.outcome,
            differs: summed.differs,
            why: summed.why,
            evidence: summed.evidence,
        }
    }
}
