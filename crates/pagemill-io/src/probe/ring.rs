//! Trying io_uring, and telling why when there is none.
//!
//! The kernel answers with an errno only, and each has several causes; the sysctl
//! `kernel.io_uring_disabled` (since Linux 6.6), the seccomp mode and the limits tell which one it is.

use std::io;

use pagemill_sys::{RingOffer, try_ring};
use rustix::io::Errno;

use super::errno;
use super::finding::{Call, Fact, Finding, State};
use super::kernel::Kernel;
use super::machine::Machine;
use super::trial_file::TrialFile;

const SETUP: Call = Call { name: "io_uring", label: "io_uring", since: (5, 1), remedy: None };
const OPERATIONS: Call =
    Call { name: "io_uring_operations", label: "io_uring operations", since: (5, 6), remedy: None };
const FEATURES: Call =
    Call { name: "io_uring_features", label: "io_uring features", since: (5, 1), remedy: None };

/// What decides whether a ring may be made, besides the errno.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Surroundings {
    /// The sysctl `kernel.io_uring_disabled`: 0 for nobody, 1 for all but some, 2 for all.
    disabled: Option<u64>,
    /// The sysctl `kernel.io_uring_group`: who may all the same when `disabled` is 1.
    group: Option<String>,
    /// Soft RLIMIT_MEMLOCK in bytes; None for no limit.
    memlock: Option<u64>,
    /// Soft RLIMIT_NOFILE.
    nofile: Option<u64>,
}

impl Surroundings {
    fn of(machine: &Machine) -> Self {
        use rustix::process::{Resource, getrlimit};
        Self {
            disabled: machine.number(&machine.proc("sys/kernel/io_uring_disabled")),
            group: machine.word(&machine.proc("sys/kernel/io_uring_group")),
            memlock: getrlimit(Resource::Memlock).current,
            nofile: getrlimit(Resource::Nofile).current,
        }
    }
}

/// The findings about io_uring.
pub(super) fn findings(trial: &TrialFile, kernel: &Kernel, machine: &Machine) -> Vec<Finding> {
    match try_ring(&trial.file, trial.len.min(8192)) {
        Err(error) => {
            let (why, remedy) = refusal(errno::of(&error), &Surroundings::of(machine), kernel);
            vec![refused(errno::of(&error), &why, remedy)]
        }
        Ok(offer) => offered(offer, kernel),
    }
}

fn refused(error: Errno, why: &str, remedy: String) -> Finding {
    let errno = errno::name(error);
    let finding = SETUP.found(State::Missing, format!("{errno}: {why}"));
    Finding { errno: Some(errno), ..finding.with_remedy(remedy) }
}

fn offered(offer: RingOffer, kernel: &Kernel) -> Vec<Finding> {
    let setup = match offer.read {
        Ok(count) => SETUP.works(format!("a READ through a ring brought {count} bytes")),
        Err(error) => unusable(&error, kernel),
    };
    let operations = match offer.operations {
        Ok(listed) => operations(&listed),
        Err(error) => OPERATIONS.refused(errno::of(&error), kernel),
    };
    let (there, _) = there_and_lacking(&offer.features);
    let features = FEATURES.works(there.to_lowercase()).with_facts(facts(&offer.features));
    vec![setup, operations, features]
}

/// A ring that was made, and does not read.
fn unusable(error: &io::Error, kernel: &Kernel) -> Finding {
    let mut finding = SETUP.refused(errno::of(error), kernel);
    finding.detail = format!("a ring can be made, but a READ through it fails: {}", finding.detail);
    finding
}

fn operations(listed: &[(&'static str, bool)]) -> Finding {
    let (there, lacking) = there_and_lacking(listed);
    let reads = ["read", "readv"].iter().all(|name| listed.contains(&(*name, true)));
    let state = if reads { State::Works } else { State::Missing };
    let seen = match lacking.is_empty() {
        true => there,
        false => format!("{there}; lacking: {lacking}"),
    };
    OPERATIONS.found(state, seen).with_facts(facts(listed))
}

fn facts(listed: &[(&'static str, bool)]) -> Vec<(&'static str, Fact)> {
    listed.iter().map(|&(name, offered)| (name, Fact::Offered(offered))).collect()
}

/// The names of what is there, and of what is not.
fn there_and_lacking(listed: &[(&'static str, bool)]) -> (String, String) {
    let named = |wanted: bool| {
        let names = listed.iter().filter(|(_, offered)| *offered == wanted);
        names.map(|(name, _)| name.to_uppercase()).collect::<Vec<_>>().join(", ")
    };
    (named(true), named(false))
}

/// Why no ring can be made, and what would help.
fn refusal(error: Errno, surroundings: &Surroundings, kernel: &Kernel) -> (String, String) {
    let told = |why: &str, remedy: &str| (why.to_owned(), remedy.to_owned());
    match (error, surroundings.disabled) {
        (Errno::PERM, Some(2)) => told(
            "sysctl kernel.io_uring_disabled=2 forbids it to everybody",
            "set it to 0 (sysctl -w kernel.io_uring_disabled=0)",
        ),
        (Errno::PERM, Some(1)) => {
            let group = surroundings.group.as_deref().unwrap_or("-1");
            let own_group = match group {
                "-1" => "set sysctl kernel.io_uring_group to a group of this user".to_owned(),
                group => format!("run as a member of group {group} (kernel.io_uring_group)"),
            };
            let why = "sysctl kernel.io_uring_disabled=1 forbids it to users without CAP_SYS_ADMIN";
            (why.to_owned(), format!("{own_group}, or set kernel.io_uring_disabled to 0"))
        }
        (Errno::PERM | Errno::ACCESS, _) if kernel.has_seccomp_filter() => told(
            "a seccomp filter forbids it, as containers do by default",
            "allow io_uring_setup, io_uring_enter and io_uring_register in the seccomp profile",
        ),
        (Errno::PERM | Errno::ACCESS, _) => told(
            "a security module forbids it",
            "look for a denial in the kernel's log or the audit log",
        ),
        (Errno::NOSYS, Some(_)) => told(
            "the kernel has it, and a sandbox (seccomp, gVisor) hides it",
            "allow io_uring_setup, io_uring_enter and io_uring_register in the seccomp profile",
        ),
        (Errno::NOSYS, None) if kernel.is_older_than(SETUP.since) => {
            told("the kernel is too old for it", "run Linux 5.1 or newer")
        }
        (Errno::NOSYS, None) => told(
            "the kernel was built without it, or a sandbox hides it",
            "run a kernel with CONFIG_IO_URING, or leave the sandbox",
        ),
        (Errno::NOMEM, _) => (
            format!("RLIMIT_MEMLOCK is {} bytes", limit(surroundings.memlock)),
            "raise it (ulimit -l); before Linux 5.12 rings count as locked memory".to_owned(),
        ),
        (Errno::MFILE, _) => (
            format!("RLIMIT_NOFILE is {}, and all are open", limit(surroundings.nofile)),
            "raise it (ulimit -n)".to_owned(),
        ),
        (Errno::NFILE, _) => told("the system's table of open files is full", "raise fs.file-max"),
        (other, _) => {
            (io::Error::from(other).to_string(), "look in the kernel's log for a reason".to_owned())
        }
    }
}

fn limit(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: Errno, disabled: Option<u64>, seccomp: u64) -> String {
        let surroundings = Surroundings {
            disabled,
            group: Some("-1".into()),
            memlock: Some(65_536),
            nofile: Some(1024),
        };
        let (why, remedy) = refusal(error, &surroundings, &Kernel::of("6.18.4", seccomp));
        format!("{why}: {remedy}")
    }

    #[test]
    fn the_sysctl_is_named_with_its_value_and_the_way_out() {
        let all = told(Errno::PERM, Some(2), 2);
        assert!(all.contains("kernel.io_uring_disabled=2") && all.contains("set it to 0"), "{all}");
        let some = told(Errno::PERM, Some(1), 0);
        assert!(some.contains("io_uring_disabled=1") && some.contains("io_uring_group"), "{some}");
    }

    #[test]
    fn a_group_that_may_is_named() {
        let surroundings = Surroundings {
            disabled: Some(1),
            group: Some("113".into()),
            ..Surroundings::default()
        };
        let (_, remedy) = refusal(Errno::PERM, &surroundings, &Kernel::of("6.18.4", 0));
        assert!(remedy.contains("group 113"), "{remedy}");
    }

    #[test]
    fn a_permission_that_no_sysctl_denies_is_the_filters_or_a_security_modules() {
        for disabled in [Some(0), None] {
            assert!(told(Errno::PERM, disabled, 2).contains("seccomp"));
            assert!(told(Errno::PERM, disabled, 0).contains("security module"));
        }
    }

    #[test]
    fn a_call_that_does_not_exist_on_a_kernel_that_has_the_sysctl_is_hidden() {
        assert!(told(Errno::NOSYS, Some(0), 2).contains("sandbox"));
        assert!(told(Errno::NOSYS, None, 0).contains("CONFIG_IO_URING"));
        let old = Kernel::of("4.19.0", 0);
        assert!(refusal(Errno::NOSYS, &Surroundings::default(), &old).0.contains("too old"));
    }

    #[test]
    fn a_ring_without_a_reading_operation_is_of_no_use() {
        let old = operations(&[("read", false), ("readv", true), ("write", false)]);
        assert_eq!(old.state, State::Missing);
        assert_eq!(old.detail, "READV; lacking: READ, WRITE");
        let new = operations(&[("read", true), ("readv", true), ("fallocate", false)]);
        assert_eq!(new.state, State::Works);
        assert!(new.facts.contains(&("fallocate", Fact::Offered(false))));
    }

    #[test]
    fn limits_are_told_with_their_values() {
        assert!(told(Errno::NOMEM, Some(0), 0).contains("RLIMIT_MEMLOCK is 65536 bytes"));
        assert!(told(Errno::MFILE, Some(0), 0).contains("RLIMIT_NOFILE is 1024"));
        assert!(told(Errno::NFILE, None, 0).contains("file-max"));
    }
}
