//! The directory of the server's socket: the one that the cluster lies in, or a short one where that has too long a name.
//!
//! The path of a socket has at most 107 bytes (`sun_path`, unix(7)), and in PostgreSQL's lists of directories some characters
//! separate. Invariant: a directory that was made for it is the server's alone, and is removed when the value is dropped.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::error::{Error, Result};

/// Bytes of a socket's path at most.
const LONGEST: usize = 107;
/// The socket's name: `.s.PGSQL.` and the port.
const SOCKET: &str = "/.s.PGSQL.5432";
/// The number in it. No two servers share a directory, so any will do.
pub(crate) const PORT: &str = "5432";
/// What a directory made for it is called; a number follows.
const PREFIX: &str = "pagemill-socket.";
/// Names that are tried at most.
const MOST_NAMES: u32 = 100;

/// Where the socket is.
#[derive(Debug)]
pub(crate) struct SocketDirectory {
    path: PathBuf,
    is_made: bool,
}

impl SocketDirectory {
    /// `directory` if it will do, else one below the directory for temporary files.
    pub(crate) fn new(directory: &Path, account: &Account) -> Result<Self> {
        if will_do(directory) {
            return Ok(Self { path: directory.into(), is_made: false });
        }
        let path =
            make(&std::env::temp_dir()).map_err(Error::system("a directory for a socket"))?;
        let made = Self { path, is_made: true };
        if !will_do(&made.path) {
            return Err(Error::SocketName);
        }
        account.own(&made.path)?;
        Ok(made)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketDirectory {
    fn drop(&mut self) {
        if self.is_made {
            // A server that was killed leaves its socket there.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn will_do(directory: &Path) -> bool {
    let bytes = directory.as_os_str().as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(byte);
    bytes.first() == Some(&b'/')
        && bytes.len() + SOCKET.len() <= LONGEST
        && bytes.iter().all(is_plain)
}

fn make(parent: &Path) -> io::Result<PathBuf> {
    let first = std::process::id();
    for number in first..first.saturating_add(MOST_NAMES) {
        let path = parent.join(format!("{PREFIX}{number}"));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_directory_is_used_and_a_long_one_replaced_for_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let short = SocketDirectory::new(dir.path(), &Account::Own).unwrap();
        assert_eq!(short.path(), dir.path());
        drop(short);
        assert!(dir.path().is_dir());
        let long = dir.path().join("d".repeat(100));
        let made = SocketDirectory::new(&long, &Account::Own).unwrap();
        let path = made.path().to_owned();
        assert!(path.is_dir() && path != long);
        fs::write(path.join("socket"), "").unwrap();
        drop(made);
        assert!(!path.exists());
    }

    #[test]
    fn names_that_need_quotes_or_are_too_long_by_a_byte_will_not_do() {
        assert!(will_do(Path::new("/var/tmp/pagemill.000001/postgres")));
        for name in ["relative", "/a b", "/a,b", "/a'b", "/ä"] {
            assert!(!will_do(Path::new(name)), "{name}");
        }
        let long = |bytes: usize| format!("/{}", "d".repeat(bytes - 1));
        assert!(will_do(Path::new(&long(LONGEST - SOCKET.len()))));
        assert!(!will_do(Path::new(&long(LONGEST - SOCKET.len() + 1))));
    }
}
