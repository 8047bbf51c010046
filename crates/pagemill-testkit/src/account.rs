//! The account a test server runs under.
//!
//! PostgreSQL refuses to start as root (`check_root` in `main.c`), and tests in containers usually are root. The
//! server commands are then started under another account; its files stay readable for root. An ordinary user
//! simply runs the server itself.

use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The accounts tried in turn when the tests run as root.
const CANDIDATES: [&str; 3] = ["postgres", "pagemill-test", "nobody"];

/// Whom the server processes belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// The user who runs the tests.
    Own,
    /// Another account, because the tests run as root.
    Other {
        /// Its user id.
        uid: u32,
        /// Its group id.
        gid: u32,
    },
}

impl Account {
    /// The account for servers started by this process.
    pub fn for_server() -> Result<Account> {
        if std::fs::metadata("/proc/self")?.uid() != 0 {
            return Ok(Account::Own);
        }
        if let Some(account) = lookup(&CANDIDATES[..2])? {
            return Ok(account);
        }
        create_account();
        match lookup(&CANDIDATES)? {
            Some(account) => Ok(account),
            None => {
                bail!("running as root, and no account to run PostgreSQL under: create `postgres`")
            }
        }
    }

    /// A command that runs under this account, cut off from the caller's terminal and PG* settings.
    pub fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).current_dir("/");
        clear_pg_environment(&mut command);
        if let Account::Other { uid, gid } = self {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Hands `path` over to this account.
    pub fn own(self, path: &Path) -> Result<()> {
        match self {
            Account::Own => Ok(()),
            Account::Other { uid, gid } => chown(path, Some(uid), Some(gid))
                .with_context(|| format!("handing over {}", path.display())),
        }
    }

    /// Creates a directory that this account may write to and everyone may enter.
    pub fn create_dir(self, path: &Path) -> Result<()> {
        std::fs::create_dir_all(path).with_context(|| format!("creating {}", path.display()))?;
        self.own(path)
    }
}

/// Removes every setting that would make a server or client behave as the caller's shell wishes.
pub(crate) fn clear_pg_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name_bytes = name.as_encoded_bytes();
        if name_bytes.starts_with(b"PG") || name_bytes.starts_with(b"LC_") || name_bytes == b"LANG"
        {
            command.env_remove(&name);
        }
    }
}

fn lookup(names: &[&str]) -> Result<Option<Account>> {
    let passwd = std::fs::read_to_string("/etc/passwd").context("reading /etc/passwd")?;
    Ok(names.iter().find_map(|name| account_in(&passwd, name)))
}

fn account_in(passwd: &str, name: &str) -> Option<Account> {
    let fields: Vec<&str> =
        passwd.lines().map(|line| line.split(':').collect()).find(|f: &Vec<&str>| f[0] == name)?;
    let (uid, gid) = (fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?);
    (uid != 0).then_some(Account::Other { uid, gid })
}

/// Tries to make an account; `nobody` is the fallback, so a failure is not an error yet.
fn create_account() {
    let _ = Command::new("useradd")
        .args(["--system", "--no-create-home", "--user-group", CANDIDATES[1]])
        .stderr(Stdio::null())
        .status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_exact_name_and_never_as_root() {
        let passwd =
            "root:x:0:0::/root:/bin/sh\npostgres2:x:7:8::/:/bin/sh\npostgres:x:101:104::/:/x\n";
        assert_eq!(account_in(passwd, "postgres"), Some(Account::Other { uid: 101, gid: 104 }));
        assert_eq!(account_in(passwd, "root"), None);
        assert_eq!(account_in(passwd, "nobody"), None);
    }
}
