//! What trying a call has shown, and why it is so when it does not work.
//!
//! A [`Call`] is what is known beforehand: its names, the kernel it came with, and what helps when the
//! file system refuses it. From that and from the errno of the trial comes a [`Finding`], so that
//! every "no" has its reason, and a remedy where there is one.

use rustix::io::Errno;

use super::errno;
use super::kernel::Kernel;

/// What trying something has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name for programs: stable, in snake_case.
    pub name: &'static str,
    /// The name for people.
    pub label: &'static str,
    /// Whether it works.
    pub state: State,
    /// What was seen, or why it does not work.
    pub detail: String,
    /// The system's error by its name (`EOPNOTSUPP`), if there was one.
    pub errno: Option<String>,
    /// What would help, if anything would.
    pub remedy: Option<String>,
    /// What else was found on the way, by names for programs; those of numbers end with their unit.
    pub facts: Vec<(&'static str, Fact)>,
}

/// Something that programs may want to know of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// A number, in the unit that its name ends with.
    Number(u64),
    /// Whether a part of it is there.
    Offered(bool),
}

/// Whether something works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It was tried and did what it is for.
    Works,
    /// It was accepted; whether it did anything cannot be seen here.
    Accepted,
    /// It was accepted and did nothing.
    NoEffect,
    /// It works, and is not what it seems: something does the work in another way.
    Emulated,
    /// It was tried and refused.
    Missing,
    /// It could not be tried.
    Untried,
}

impl State {
    /// The name for programs: stable, in snake_case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Accepted => "accepted",
            Self::NoEffect => "no_effect",
            Self::Emulated => "emulated",
            Self::Missing => "missing",
            Self::Untried => "untried",
        }
    }

    /// True when calling it is of use or does no harm.
    pub fn is_usable(self) -> bool {
        matches!(self, Self::Works | Self::Accepted | Self::Emulated)
    }
}

/// A call, or a flag of one, as it is known before it is tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// The kernel it came with, and number of that version.
    pub(super) since: (u32, u32),
    /// What helps when the kernel has it and the file system does not.
    pub(super) remedy: Option<&'static str>,
}

impl Call {
    /// A finding without an error.
    pub(super) fn found(&self, state: State, detail: impl Into<String>) -> Finding {
        Finding {
            name: self.name,
            label: self.label,
            state,
            detail: detail.into(),
            errno: None,
            remedy: None,
            facts: Vec::new(),
        }
    }

    pub(super) fn works(&self, detail: impl Into<String>) -> Finding {
        self.found(State::Works, detail)
    }

    pub(super) fn untried(&self, why: impl Into<String>) -> Finding {
        self.found(State::Untried, why)
    }

    /// The call was refused with that error.
    pub(super) fn refused(&self, error: Errno, kernel: &Kernel) -> Finding {
        let (state, why, remedy) = self.reason(error, kernel);
        let errno = errno::name(error);
        let detail = format!("{errno}: {why}");
        Finding { errno: Some(errno), remedy, ..self.found(state, detail) }
    }

    /// The kernel has no error and no answer either.
    pub(super) fn untold(&self, seen: &str, kernel: &Kernel) -> Finding {
        let (_, why, remedy) = self.reason(Errno::OPNOTSUPP, kernel);
        Finding { remedy, ..self.found(State::Missing, format!("{seen}: {why}")) }
    }

    fn reason(&self, error: Errno, kernel: &Kernel) -> (State, String, Option<String>) {
        let (major, minor) = self.since;
        let too_old = kernel.is_older_than(self.since);
        let missing = |why: &str, remedy: Option<String>| (State::Missing, why.to_owned(), remedy);
        match error {
            Errno::NOSPC | Errno::DQUOT => {
                let remedy = Some("make room and try again".to_owned());
                (State::Untried, "there is no space left to try it in".to_owned(), remedy)
            }
            Errno::MFILE | Errno::NFILE => {
                let remedy = Some("raise the limit of open files (ulimit -n)".to_owned());
                (State::Untried, "there is no descriptor left to try it with".to_owned(), remedy)
            }
            Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOTTY if too_old => missing(
                "the kernel is too old for it",
                Some(format!("run Linux {major}.{minor} or newer")),
            ),
            Errno::NOSYS | Errno::PERM if kernel.has_seccomp_filter() => missing(
                "a seccomp filter of the sandbox forbids it, as far as can be told",
                Some("allow the call in the sandbox's seccomp profile".to_owned()),
            ),
            Errno::NOSYS => missing(
                "the kernel was built without it, or a sandbox hides it",
                Some("run another kernel, or leave the sandbox".to_owned()),
            ),
            Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::XDEV | Errno::NODEV => {
                missing("the file system does not offer it", self.remedy.map(str::to_owned))
            }
            Errno::PERM | Errno::ACCESS => missing("the caller has no permission", None),
            other => missing(&std::io::Error::from(other).to_string(), None),
        }
    }
}

impl Finding {
    #[must_use]
    pub(super) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    #[must_use]
    pub(super) fn with_facts(mut self, facts: impl Into<Vec<(&'static str, Fact)>>) -> Self {
        self.facts = facts.into();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call =
        Call { name: "x", label: "x", since: (6, 14), remedy: Some("use ext4 or XFS") };

    fn refused(errno: Errno, release: &str, seccomp: u64) -> (State, String) {
        let finding = CALL.refused(errno, &Kernel::of(release, seccomp));
        (finding.state, finding.remedy.unwrap_or_default())
    }

    #[test]
    fn the_same_errno_has_another_remedy_on_an_old_kernel_in_a_sandbox_and_on_a_file_system() {
        use State::{Missing, Untried};
        let remedy = |(state, remedy): (State, String), expected| {
            assert_eq!(state, expected);
            remedy
        };
        let old = remedy(refused(Errno::OPNOTSUPP, "6.13.9-amd64", 0), Missing);
        assert_eq!(old, "run Linux 6.14 or newer");
        let other_files = remedy(refused(Errno::OPNOTSUPP, "6.14.0", 2), Missing);
        assert_eq!(other_files, "use ext4 or XFS");
        let filter = remedy(refused(Errno::NOSYS, "6.18.4", 2), Missing);
        assert!(filter.contains("seccomp"), "{filter}");
        let full = remedy(refused(Errno::NOSPC, "6.18.4", 2), Untried);
        assert!(full.contains("room"), "{full}");
    }
}
