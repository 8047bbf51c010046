//! What to type instead: the one place where errors of the libraries, which know no flags, meet those of the command.
//!
//! Invariant: a remedy is only added where the flag that it names exists for the command that was given.

use std::path::Path;

use pagemill_cluster::error::DirectoryFault;
use pagemill_cluster::refusal::{DatabaseCause, LoadObstacle, RepositoryCause};
use pagemill_cluster::{Error as ClusterError, Refusal as ClusterRefusal};
use pagemill_engine::Error as EngineError;
use pagemill_engine::clone::cluster::escaped;
use pagemill_engine::refusal::{
    CloneRefusal, CopyRefusal, LoadRefusal, OrderChoices, OrderRefusal, Refusal,
};
use pagemill_io::{Error as IoError, ErrorKind, Refusal as IoRefusal};
use rustix::io::Errno;

const LC_MONETARY: &str = "; name another locale with --lc-monetary, such as C";
const FILE_COPY: &str = ": use --strategy file_copy";
const NO_DIRECT: &str = ": leave out --direct";
const BACKUP: &str =
    ", or a backup of the repository with --backup: latest, or a label that ls shows";
/// Where what WAL does is too much for the memory it has.
const MORE_FOR_WAL: &str = ": allow more with --wal-memory";

const DROPPED: &str = "; one that was dropped is in a base backup, up to a moment before that: --wal ARCHIVE --until TARGET";
const TABLESPACE_MAPPING: &str = "--tablespace-mapping";

/// What flags of a command can do about errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remedies {
    /// It reads only, and may do so where nothing may be changed.
    reads: bool,
    /// It copies a cluster and checks its pages on request.
    verifies: bool,
    /// It tells what was, so it may be asked about a table that is no more.
    looks_back: bool,
}

impl Remedies {
    /// Those of a command that reads a cluster, with the flags of `cluster_arguments`.
    pub const READING: Self = Self { reads: true, verifies: false, looks_back: false };
    /// Those of a command that changes a cluster, or has nothing to do with one.
    pub const CHANGING: Self = Self { reads: false, verifies: false, looks_back: false };

    /// The same, of a command that also tells what was.
    #[must_use]
    pub const fn looking_back(self) -> Self {
        Self { looks_back: true, ..self }
    }

    /// The same, of a command whose `--verify` can be left out.
    #[must_use]
    pub const fn verifying(self) -> Self {
        Self { verifies: true, ..self }
    }

    /// The message of an error, with what to type instead.
    pub fn apply(self, error: &anyhow::Error, message: String) -> String {
        if let Some(ClusterError::Refused(refusal)) = cluster_error(error)
            && matches!(**refusal, ClusterRefusal::Mapping(_))
        {
            return format!("{TABLESPACE_MAPPING}: {message}");
        }
        match error.downcast_ref() {
            Some(EngineError::Refused(refusal)) => of_refusal(refusal, message),
            Some(EngineError::Cluster(error)) => message + &self.of_cluster(error),
            Some(EngineError::Output(error) | EngineError::Input(error)) => message + of_io(error),
            Some(EngineError::Threads(_)) => message + ", with -j",
            Some(_) => message,
            None => message + &self.of_other(error),
        }
    }

    fn of_other(self, error: &anyhow::Error) -> String {
        if let Some(error) = error.downcast_ref::<ClusterError>() {
            return self.of_cluster(error);
        }
        if let Some(error) = error.downcast_ref::<IoError>() {
            return of_io(error).to_owned();
        }
        let io = error.downcast_ref::<std::io::Error>();
        io.and_then(IoRefusal::of).map_or("", of_io_refusal).to_owned()
    }

    fn of_cluster(self, error: &ClusterError) -> String {
        let remedy = match error {
            ClusterError::Running { .. } if self.reads => {
                ", or read on with --live, which can only be advisory"
            }
            ClusterError::NotADataDirectory { fault: DirectoryFault::Repository, .. }
                if self.reads =>
            {
                BACKUP
            }
            ClusterError::NotShutDown { .. } if self.reads => {
                ", or read the files as they are with --allow-unclean"
            }
            ClusterError::Damage(damage) if damage.is_against_wal && self.reads => {
                "; --allow-inconsistent reads on all the same"
            }
            ClusterError::Damage(_) if self.verifies => ": leave out --verify to copy it as it is",
            ClusterError::NotFound { what, .. }
                if self.looks_back
                    && (what.starts_with("table ") || what.starts_with("relation ")) =>
            {
                DROPPED
            }
            ClusterError::Wal(pagemill_wal::Error::Missing { .. }) if self.reads => {
                ": name the archive that has it with --wal"
            }
            ClusterError::Wal(pagemill_wal::Error::Missing { .. }) => {
                "; changes are logged behind the last checkpoint: restore pg_wal first"
            }
            ClusterError::NoUnpinnedBuffers(_) => ": raise --shared-buffers, or lower --jobs",
            ClusterError::MissingTablespace { named: Some(named), .. } if self.reads => {
                return format!(", or name where it is{}", mapping_flag(named));
            }
            ClusterError::Refused(refusal) => return self.of_cluster_refusal(refusal),
            ClusterError::Wal(pagemill_wal::Error::Memory(_)) if self.reads => MORE_FOR_WAL,
            ClusterError::Io(error) | ClusterError::Wal(pagemill_wal::Error::Io(error)) => {
                of_io(error)
            }
            _ => "",
        };
        remedy.to_owned()
    }

    fn of_cluster_refusal(self, refusal: &ClusterRefusal) -> String {
        match refusal {
            ClusterRefusal::LiveTablespace { directory, .. } if self.reads => {
                let flag = mapping_flag(directory);
                let accept = "or read on all the same with --allow-inconsistent";
                format!(": name where this copy has them{flag}, {accept}")
            }
            ClusterRefusal::Recovery(problem) if problem.is_of_wal() && self.reads => {
                "; --allow-inconsistent reads what there is".to_owned()
            }
            _ => of_cluster_cause(refusal).to_owned(),
        }
    }
}

/// The error of the cluster, alone or within that of the engine.
fn cluster_error(error: &anyhow::Error) -> Option<&ClusterError> {
    match error.downcast_ref() {
        Some(EngineError::Cluster(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}

fn of_cluster_cause(refusal: &ClusterRefusal) -> &'static str {
    match refusal {
        ClusterRefusal::Money { .. } => LC_MONETARY,
        ClusterRefusal::Incremental { .. } => ", or read it as it lies, and name those with --base",
        ClusterRefusal::MissingBase { .. } => ", with --base",
        ClusterRefusal::Repository { cause, .. } => match cause {
            RepositoryCause::Stanzas(_) => ", with --stanza",
            RepositoryCause::NoPassphrase => {
                ": set PGBACKREST_REPO1_CIPHER_PASS in the environment to its repo1-cipher-pass"
            }
            RepositoryCause::WrongPassphrase => {
                ": look at PGBACKREST_REPO1_CIPHER_PASS in the environment"
            }
            _ => "",
        },
        ClusterRefusal::Column { cause, .. } => of_cluster_cause(cause),
        ClusterRefusal::NotLoadable { obstacle: LoadObstacle::ReferringKey(_), .. } => {
            ", or load without --truncate"
        }
        ClusterRefusal::Database { cause: DatabaseCause::TablesInTarget, .. } => {
            ", or choose another --tablespace"
        }
        _ => "",
    }
}

fn of_refusal(refusal: &Refusal, message: String) -> String {
    match refusal {
        Refusal::Order(refusal) => of_order(refusal, message),
        Refusal::Unprintable { columns, .. } => {
            let is_money = |(_, why): &(_, _)| matches!(why, ClusterRefusal::Money { .. });
            let money = if columns.iter().any(is_money) { LC_MONETARY } else { "" };
            message
                + money
                + "; leave such columns out with --columns, or print their bytes with --unknown-types hex"
        }
        Refusal::Load(refusal) => message + of_load(refusal),
        Refusal::Clone(refusal) => message + of_clone(refusal),
        Refusal::Copy(refusal) => of_copy(refusal, message),
        _ => message,
    }
}

/// The choices are those of the library, spelled as flags.
fn of_order(refusal: &OrderRefusal, message: String) -> String {
    let choices = match &refusal.choices {
        OrderChoices::NoIndex(_) | OrderChoices::NoPartition => {
            return message + ", so leave out --order-by";
        }
        OrderChoices::Partitions(found) => {
            let flags =
                |(table, index): &(String, String)| format!("-t {table} --order-by {index}");
            found.iter().map(flags).collect::<Vec<_>>().join(", ")
        }
        _ => return message,
    };
    let own = refusal.choices.to_string();
    let before = message.strip_suffix(&own).unwrap_or(&message);
    format!("{before}order one partition by its own: {choices}")
}

fn of_load(refusal: &LoadRefusal) -> &'static str {
    match refusal {
        LoadRefusal::FreezeBehindRows { .. } => ": load without --freeze, or with --truncate",
        LoadRefusal::LeftOut { .. } => {
            ": put it among --columns, with a value for each row in the input"
        }
        _ => "",
    }
}

fn of_clone(refusal: &CloneRefusal) -> &'static str {
    match refusal {
        CloneRefusal::NoSpace { is_logged: true, .. } => {
            ", or write half as much with --strategy file_copy"
        }
        CloneRefusal::NotLoggedByPages | CloneRefusal::NoReflink(_) => FILE_COPY,
        _ => "",
    }
}

fn of_copy(refusal: &CopyRefusal, message: String) -> String {
    match refusal {
        CopyRefusal::NoReflink { .. } => message + FILE_COPY + ", or auto",
        CopyRefusal::NotMapped { directory, .. } => message + &mapping_of(directory),
        CopyRefusal::Mapping(_) => format!("{TABLESPACE_MAPPING}: {message}"),
        _ => message,
    }
}

fn mapping_of(directory: &Path) -> String {
    format!(": name a directory for its copy{}", mapping_flag(directory))
}

fn mapping_flag(directory: &Path) -> String {
    format!(" with {TABLESPACE_MAPPING} {}=NEWDIR", escaped(directory))
}

fn of_io(error: &IoError) -> &'static str {
    match error.kind() {
        ErrorKind::Refused(refusal) => of_io_refusal(refusal),
        ErrorKind::Io(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::PERM | Errno::NOSYS) => ": try another --io-method",
            Some(Errno::NOMEM) => ", or try another --io-method than mmap",
            _ => match error.get_ref().and_then(|cause| cause.downcast_ref()) {
                Some(error) => of_wal(error),
                None => of_store(error),
            },
        },
        _ => "",
    }
}

/// Of an object store, in a program that reads some.
#[cfg(feature = "remote")]
fn of_store(error: &std::io::Error) -> &'static str {
    crate::remote_remedies::of(error)
}

#[cfg(not(feature = "remote"))]
fn of_store(_: &std::io::Error) -> &'static str {
    ""
}

/// Of a page that cannot be redone because of what is known of WAL.
fn of_wal(error: &pagemill_wal::Error) -> &'static str {
    match error {
        pagemill_wal::Error::Memory(_) => MORE_FOR_WAL,
        _ => "",
    }
}

fn of_io_refusal(refusal: &IoRefusal) -> &'static str {
    match refusal {
        IoRefusal::NoDirectIo
        | IoRefusal::NoDirectIoForFile
        | IoRefusal::DirectAlignment { .. } => NO_DIRECT,
        IoRefusal::MappedDirectIo => ": leave out --direct, or use another --io-method than mmap",
        IoRefusal::NoRing => ": use --io-method worker",
        IoRefusal::RingSwitchedOff(_) | IoRefusal::RingForbidden | IoRefusal::RingMemory => {
            ", or use --io-method worker"
        }
        IoRefusal::NoThreads(_) => ", or use --io-method pread",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(remedies: Remedies, error: impl Into<anyhow::Error>) -> String {
        let error = error.into();
        let own = error.to_string();
        remedies.apply(&error, own)
    }

    #[test]
    fn a_running_server_may_be_read_beside_and_never_written_to() {
        let running = || ClusterError::Running { path: "/d/postmaster.pid".into(), pid: 7 };
        let stop = "/d/postmaster.pid: a server is running here (process 7): stop it first";
        let live = ", or read on with --live, which can only be advisory";
        assert_eq!(message(Remedies::READING, running()), format!("{stop}{live}"));
        assert_eq!(message(Remedies::CHANGING, running()), stop);
        let within = EngineError::from(running());
        assert_eq!(message(Remedies::READING, within), format!("{stop}{live}"));
    }

    #[test]
    fn what_the_platform_lacks_has_its_flag_however_deep_the_error_lies() {
        let refused = || IoError::new(IoRefusal::NoDirectIo, "/d/base/5/1");
        let says = "/d/base/5/1: the file system has no direct I/O: leave out --direct";
        assert_eq!(message(Remedies::READING, refused()), says);
        assert_eq!(message(Remedies::CHANGING, ClusterError::from(refused())), says);
        assert_eq!(message(Remedies::CHANGING, EngineError::Input(refused())), says);
        let ring = std::io::Error::from(IoRefusal::RingForbidden);
        assert!(
            message(Remedies::READING, ring).ends_with("allow it there, or use --io-method worker")
        );
    }

    #[test]
    fn a_page_whose_records_do_not_fit_names_the_memory_for_wal() {
        let too_much = || pagemill_wal::Error::Memory("the records of one page");
        let says = "/d/base/5/1: the records of one page do not fit in the memory allowed for WAL: allow more with --wal-memory";
        let read = IoError::new(std::io::Error::other(too_much()), "/d/base/5/1");
        assert_eq!(message(Remedies::READING, ClusterError::from(read)), says);
        assert!(
            message(Remedies::READING, ClusterError::from(too_much()))
                .ends_with("with --wal-memory")
        );
    }

    #[test]
    fn the_choices_of_an_order_are_spelled_as_flags() {
        let cause = pagemill_engine::refusal::OrderCause::Partitioned("public.p".into());
        let choices = OrderChoices::Partitions(vec![("public.p_1".into(), "p_1_id".into())]);
        let said =
            message(Remedies::READING, EngineError::refused(OrderRefusal { cause, choices }));
        let end = "partitions: order one partition by its own: -t public.p_1 --order-by p_1_id";
        assert!(said.starts_with("public.p is partitioned") && said.ends_with(end), "{said}");
    }

    #[test]
    fn an_error_without_a_flag_stays_as_it_is() {
        let missing = ClusterError::NotFound { what: "table t".into(), near: Vec::new() };
        assert_eq!(message(Remedies::READING, missing), "table t does not exist");
    }
}
