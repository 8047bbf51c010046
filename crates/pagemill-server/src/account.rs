//! The account that a server runs under: one's own, or another one for root, as PostgreSQL does not run as root
//! (`check_root`, `src/backend/main/main.c`, PostgreSQL 14 to 18).
//!
//! Invariant: what runs under an account sees nothing of the settings of the caller's shell that PostgreSQL looks at, and gets
//! nothing that is typed, Ctrl-C neither.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::{Error, Result};

/// Whose processes and files the server's are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// Those of who runs this process.
    Own,
    /// Another's, as this process is run by root.
    Other {
        /// Its name.
        name: &'static str,
        /// Its user id.
        uid: u32,
        /// The id of its group.
        gid: u32,
    },
}

impl Account {
    /// The account for servers of this process: for root the first of these that is there.
    ///
    /// # Errors
    /// When root runs this, and none is.
    pub fn for_server(candidates: &[&'static str]) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Own);
        }
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = candidates.iter().find_map(|name| account_in(&accounts, name));
        let wanted = candidates.first().copied().unwrap_or("postgres");
        found.ok_or(Error::NoAccount { wanted })
    }

    /// A program that runs under it, in a process group of its own.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Self::Other { uid, gid, .. } = self {
            command.uid(*uid).gid(*gid);
        }
        set_apart(&mut command);
        command
    }

    /// The same for a program that `wrapper` runs in place of itself, being the caller's: for what the account may not do
    /// itself, such as entering a control group.
    pub fn command_through(&self, mut wrapper: Command, program: &Path) -> Command {
        if let Self::Other { uid, gid, .. } = self {
            // Unlike runuser, it does not wait for the program in a process of its own.
            wrapper.arg("setpriv").arg(format!("--reuid={uid}"));
            wrapper.arg(format!("--regid={gid}")).arg("--clear-groups");
        }
        wrapper.arg(program);
        set_apart(&mut wrapper);
        wrapper
    }

    /// Lets it own a file or directory.
    ///
    /// # Errors
    /// The system's, with the file's name.
    pub fn own(&self, path: &Path) -> Result<()> {
        match self {
            Self::Own => Ok(()),
            Self::Other { uid, gid, .. } => {
                chown(path, Some(*uid), Some(*gid)).map_err(Error::file(path))
            }
        }
    }

    /// Creates a directory, and those above it, that this account may write to and everyone may enter.
    ///
    /// # Errors
    /// The system's, with the directory's name.
    pub fn create_dir(&self, path: &Path) -> Result<()> {
        fs::create_dir_all(path).map_err(Error::file(path))?;
        self.own(path)
    }

    /// How messages call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Own => "your account",
            Self::Other { name, .. } => name,
        }
    }
}

fn set_apart(command: &mut Command) {
    command.stdin(Stdio::null()).current_dir("/").process_group(0);
    clear_settings(command);
}

/// Takes away every setting that would make a server or a client behave as the caller's shell wishes.
pub(crate) fn clear_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_setting(name.as_encoded_bytes())) {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C");
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

    const OTHER: Account = Account::Other { name: "postgres", uid: 101, gid: 104 };

    #[test]
    fn an_account_is_found_by_its_whole_name_and_is_never_root() {
        let accounts = "root:x:0:0::/root:/bin/sh\npostgres2:x:7:8::/:/x\npostgres:x:101:104::/:/x\nnobody:*:x\n";
        assert_eq!(account_in(accounts, "postgres"), Some(OTHER));
        assert_eq!(account_in(accounts, "root"), None);
        assert_eq!(account_in(accounts, "nobody"), None);
        assert_eq!(account_in("", "nobody"), None);
    }

    #[test]
    fn settings_of_the_shell_are_known_by_name() {
        assert!(is_setting(b"PGDATA") && is_setting(b"LC_MESSAGES") && is_setting(b"LANG"));
        assert!(!is_setting(b"PATH") && !is_setting(b"HOME"));
    }

    #[test]
    fn behind_a_wrapper_the_program_becomes_the_accounts_without_another_process() {
        let words = |account: Account| {
            let command = account.command_through(Command::new("env"), Path::new("/bin/postgres"));
            let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(Account::Own), "/bin/postgres");
        let expected = "setpriv --reuid=101 --regid=104 --clear-groups /bin/postgres";
        assert_eq!(words(OTHER), expected);
    }
}
