//! The account that the server runs under: one's own, or another one for root, as PostgreSQL does not run as root
//! (`check_root`, `src/backend/main/main.c`, PostgreSQL 14 to 18).
//!
//! Invariant: what runs under an account sees nothing of the settings of the caller's shell that PostgreSQL looks at, and gets
//! nothing that is typed, Ctrl-C neither.

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::{Error, Result};

/// The accounts that root tries, one after the other.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// Whose processes and files the server's are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Account {
    /// Those of who runs the lab.
    Own,
    /// Another's, as it is run by root.
    Other { name: &'static str, uid: u32, gid: u32 },
}

impl Account {
    /// The account for servers of this process.
    pub(super) fn for_server() -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Own);
        }
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = CANDIDATES.iter().find_map(|name| account_in(&accounts, name));
        found.ok_or_else(|| {
            let remedy = "make an account named postgres, or run it as an ordinary user";
            Error::server("PostgreSQL does not run as root", remedy)
        })
    }

    /// A program that runs under it, in a group of its own.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).current_dir("/").process_group(0);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_setting(name.as_encoded_bytes()))
        {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C");
        if let Self::Other { uid, gid, .. } = self {
            command.uid(*uid).gid(*gid);
        }
        command
    }

    /// Lets it own a file or directory.
    pub(super) fn give(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Own => Ok(()),
            Self::Other { uid, gid, .. } => chown(path, Some(*uid), Some(*gid)),
        }
    }

    /// How messages call it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Own => "your account",
            Self::Other { name, .. } => name,
        }
    }
}

/// A variable that PostgreSQL's programs look at.
fn is_setting(name: &[u8]) -> bool {
    name.starts_with(b"PG") || name.starts_with(b"LC_") || name == b"LANG" || name == b"LANGUAGE"
}

fn account_in(accounts: &str, name: &'static str) -> Option<Account> {
    let line = accounts.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let mut numbers = line.split(':').skip(1).map_while(|field| field.parse().ok());
    let (uid, gid) = (numbers.next()?, numbers.next()?);
    (uid != 0).then_some(Account::Other { name, uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name_and_is_never_root() {
        let accounts = "root:x:0:0::/root:/bin/sh\npostgres2:x:7:8::/:/x\npostgres:x:101:104::/:/x\nnobody:*:x\n";
        let found = account_in(accounts, "postgres");
        assert_eq!(found, Some(Account::Other { name: "postgres", uid: 101, gid: 104 }));
        assert_eq!(account_in(accounts, "root"), None);
        assert_eq!(account_in(accounts, "nobody"), None);
        assert_eq!(account_in("", "nobody"), None);
    }

    #[test]
    fn settings_of_the_shell_are_known_by_name() {
        assert!(is_setting(b"PGDATA") && is_setting(b"LC_MESSAGES") && is_setting(b"LANG"));
        assert!(!is_setting(b"PATH") && !is_setting(b"HOME"));
    }
}
