//! What one comparison says of a claim, and what several say together.
//!
//! Invariant: what could not be measured never counts for or against a claim.

use crate::results::ClaimStatus;

/// What one comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grade {
    /// As claimed.
    Holds,
    /// The direction is right, and the figure is not reached.
    Partly,
    /// Not as claimed.
    Fails,
    /// The interval leaves it open.
    Unclear,
    /// There are no figures.
    Missing,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) grade: Grade,
    /// What was measured; of a missing one, why it was not.
    pub(super) text: String,
    /// The group, as `experiment/group`.
    pub(super) group: String,
    /// In which direction it is not as claimed; empty where that means nothing.
    pub(super) differs: String,
    /// What was measured is a model, not this storage.
    pub(super) is_of_model: bool,
}

/// What a verdict says beside the claim.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Summed {
    pub(super) outcome: ClaimStatus,
    pub(super) differs: String,
    pub(super) measured: String,
    pub(super) why: String,
    pub(super) evidence: Vec<String>,
}

/// Puts findings together; `otherwise` is said where the claim does not hold as it is.
pub(super) fn sum_up(findings: Vec<Finding>, otherwise: &str) -> Summed {
    let (missing, seen): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| finding.grade == Grade::Missing);
    let outcome = outcome(&seen);
    let texts = |findings: &[Finding]| {
        findings.iter().map(|finding| finding.text.as_str()).collect::<Vec<_>>().join("; ")
    };
    let mut why = match outcome {
        ClaimStatus::HoldsInPart | ClaimStatus::DoesNotHold => otherwise.to_owned(),
        ClaimStatus::NotSeen => {
            "the intervals are too wide to say: run again on a quieter machine, or longer".into()
        }
        ClaimStatus::Holds | ClaimStatus::NotMeasured => String::new(),
    };
    if !missing.is_empty() {
        let not = if why.is_empty() { "" } else { ". " };
        why = format!("{why}{not}Not measured: {}", texts(&missing));
    }
    let evidence = each_once(seen.iter().map(|finding| &finding.group));
    let differing = seen.iter().map(|finding| &finding.differs).filter(|text| !text.is_empty());
    let differs = each_once(differing).join("; ");
    Summed { outcome, differs, measured: texts(&seen), why, evidence }
}

fn each_once<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for text in texts {
        if !once.contains(text) {
            once.push(text.clone());
        }
    }
    once
}

fn outcome(seen: &[Finding]) -> ClaimStatus {
    let all = |grade| seen.iter().all(|finding| finding.grade == grade);
    let any = |grade| seen.iter().any(|finding| finding.grade == grade);
    if seen.is_empty() {
        ClaimStatus::NotMeasured
    } else if all(Grade::Holds) {
        ClaimStatus::Holds
    } else if any(Grade::Holds) || any(Grade::Partly) {
        ClaimStatus::HoldsInPart
    } else if any(Grade::Fails) {
        ClaimStatus::DoesNotHold
    } else {
        ClaimStatus::NotSeen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(grades: &[Grade]) -> Summed {
        let finding = |grade: &Grade| Finding {
            grade: *grade,
            text: format!("{grade:?}"),
            group: "copy/files".into(),
            differs: if *grade == Grade::Fails { "a gains more".into() } else { String::new() },
            is_of_model: false,
        };
        sum_up(grades.iter().map(finding).collect(), "otherwise")
    }

    #[test]
    fn grades_make_outcomes() {
        use Grade::{Fails, Holds, Missing, Partly, Unclear};
        assert_eq!(of(&[Holds, Holds]).outcome, ClaimStatus::Holds);
        assert_eq!(of(&[Holds, Fails]).outcome, ClaimStatus::HoldsInPart);
        assert_eq!(of(&[Partly]).outcome, ClaimStatus::HoldsInPart);
        assert_eq!(of(&[Fails, Unclear]).outcome, ClaimStatus::DoesNotHold);
        assert_eq!(of(&[Unclear]).outcome, ClaimStatus::NotSeen);
        assert_eq!(of(&[Missing]).outcome, ClaimStatus::NotMeasured);
        assert_eq!(of(&[]).outcome, ClaimStatus::NotMeasured);
        assert_eq!(of(&[Holds, Missing]).outcome, ClaimStatus::Holds);
    }

    #[test]
    fn what_is_missing_is_told_and_evidence_named_once() {
        let told = of(&[Grade::Fails, Grade::Fails, Grade::Missing]);
        assert_eq!(told.why, "otherwise. Not measured: Missing");
        assert_eq!((told.measured.as_str(), told.evidence.len()), ("Fails; Fails", 1));
        assert_eq!(told.differs, "a gains more");
        let told = of(&[Grade::Missing]);
        assert_eq!((told.measured.as_str(), told.why.as_str()), ("", "Not measured: Missing"));
        assert_eq!(of(&[Grade::Holds]).why, "");
    }
}
