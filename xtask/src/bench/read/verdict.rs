//! What a claim comes to: the fastest of those it is held against, the ratio, and the word for it.
//!
//! The fastest is chosen by its median. The ratio is then taken pair by pair, so that a drift of the machine between
//! turns is in both of its sides.

use super::rows::Claim;
use super::turns::{Absence, ContestantResult, Raced};
use crate::bench::figures::verdict;
use crate::bench::statistics::median;
use crate::bench::targets::Target;

/// A claim with its figure.
pub(super) struct Judged<'a> {
    pub(super) claim: &'a Claim,
    pub(super) subject: &'a ContestantResult,
    /// The fastest of the others.
    pub(super) reference: Option<&'a ContestantResult>,
    /// The reference's time over the subject's; where the target is the floor, the other way round.
    pub(super) ratios: Vec<f64>,
}

impl<'a> Judged<'a> {
    pub(super) fn new(raced: &'a Raced, claim: &'a Claim) -> Option<Self> {
        let subject = raced.outcomes.get(claim.subject)?;
        let others = claim.against.iter().filter_map(|index| raced.outcomes.get(*index));
        let timed = others.filter(|outcome| outcome.absence.is_none());
        let reference = timed
            .filter_map(|outcome| Some((median(&outcome.times_ms)?, outcome)))
            .min_by(|(one, _), (other, _)| one.total_cmp(other))
            .map(|(_, outcome)| outcome);
        let ratios = match reference {
            Some(reference) if subject.absence.is_none() => {
                let target = claim.target.unwrap_or(Target::AtLeast(1.0));
                target.ratios(&reference.times_ms, &subject.times_ms)
            }
            _ => Vec::new(),
        };
        Some(Self { claim, subject, reference, ratios })
    }

    pub(super) fn verdict(&self, others: &[&ContestantResult]) -> String {
        if let Some(absence) = &self.subject.absence {
            return words(absence);
        }
        if self.ratios.is_empty() {
            let absence = others.iter().find_map(|outcome| outcome.absence.as_ref());
            return absence.map_or_else(|| "not run".to_owned(), words);
        }
        let Some(target) = self.claim.target else { return "told".to_owned() };
        verdict(&self.ratios, |ratio| target.reaches(ratio)).to_owned()
    }
}

/// An absence as it stands in a table.
pub(super) fn words(absence: &Absence) -> String {
    match absence {
        Absence::NotBuilt(refusal) => format!("not built yet: {refusal}"),
        Absence::Skipped(reason) => format!("SKIPPED: {reason}"),
        Absence::Failed(reason) => format!("failed: {}", reason.replace('\n', " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::read::rows::{self, Row};

    fn raced(times: &[&[f64]]) -> Raced {
        let races = rows::all().into_iter();
        let mut races =
            races.filter_map(|row| if let Row::Race(race) = row { Some(race) } else { None });
        let mut race = races.next_back().unwrap();
        race.claims = vec![Claim {
            id: "c".into(),
            subject: 0,
            against: vec![1, 2],
            target: Some(Target::AtLeast(0.9)),
        }];
        let outcome = |times: &&[f64]| ContestantResult {
            times_ms: times.to_vec(),
            ..ContestantResult::default()
        };
        Raced { race, outcomes: times.iter().map(outcome).collect(), table_bytes: 1 }
    }

    #[test]
    fn the_subject_is_held_against_the_fastest() {
        let raced = raced(&[&[10.0; 5], &[20.0; 5], &[8.0; 5]]);
        let judged = Judged::new(&raced, &raced.race.claims[0]).unwrap();
        assert_eq!(median(&judged.ratios).unwrap(), 0.8);
        assert_eq!(judged.verdict(&[]), "missed");
    }

    #[test]
    fn of_the_floor_the_subject_may_take_a_little_more() {
        let mut raced = raced(&[&[12.0; 5], &[10.0; 5], &[10.0; 5]]);
        raced.race.claims[0].target = Some(Target::OfFloor(1.3));
        let judged = Judged::new(&raced, &raced.race.claims[0]).unwrap();
        assert_eq!((median(&judged.ratios), judged.verdict(&[])), (Some(1.2), "met".into()));
        raced.outcomes[0].times_ms = vec![14.0; 5];
        let judged = Judged::new(&raced, &raced.race.claims[0]).unwrap();
        assert_eq!(judged.verdict(&[]), "missed");
    }

    #[test]
    fn one_that_failed_is_no_reference() {
        let mut raced = raced(&[&[10.0; 5], &[20.0; 5], &[8.0; 2]]);
        raced.outcomes[2].absence = Some(Absence::Failed("x".into()));
        let judged = Judged::new(&raced, &raced.race.claims[0]).unwrap();
        assert_eq!(median(&judged.ratios).unwrap(), 2.0);
        raced.outcomes[0].absence = Some(Absence::NotBuilt("unexpected argument".into()));
        let judged = Judged::new(&raced, &raced.race.claims[0]).unwrap();
        assert_eq!(judged.verdict(&[]), "not built yet: unexpected argument");
    }
}
