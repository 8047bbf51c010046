//! `tablespace_map`: where the tablespaces of a backup were, for a copy whose links in `pg_tblspc` were left out.
//!
//! Each line is an OID, one space and a path; line ends and backslashes of a path have a backslash before them.
//!
//! Source: `read_tablespace_map` in `src/backend/access/transam/xlogrecovery.c` (14: `xlog.c`), PostgreSQL 14 to 18.

use crate::error::{Error, Result};
use crate::ids::Oid;

const STRUCTURE: &str = "tablespace_map";

/// Tablespaces and their directories, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TablespaceMap {
    /// OID, and path as the server's machine has it.
    pub entries: Vec<(Oid, Vec<u8>)>,
}

impl TablespaceMap {
    /// Reads the file's contents.
    ///
    /// # Errors
    /// Corrupt: a line that is not an OID and a path, or a last line without its end.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut map = Self::default();
        let (mut line, mut is_escaped) = (Vec::new(), false);
        for (at, &byte) in bytes.iter().enumerate() {
            match byte {
                b'\n' | b'\r' if !is_escaped => {
                    if !line.is_empty() {
                        map.entries.push(entry(&line, at)?);
                        line.clear();
                    }
                }
                b'\\' if !is_escaped => is_escaped = true,
                _ => {
                    line.push(byte);
                    is_escaped = false;
                }
            }
        }
        if !line.is_empty() || is_escaped {
            return Err(Error::corrupt(STRUCTURE, bytes.len(), "the last line has no end"));
        }
        Ok(map)
    }

    /// The path of a tablespace.
    pub fn path(&self, tablespace: Oid) -> Option<&[u8]> {
        let found = self.entries.iter().find(|(oid, _)| *oid == tablespace);
        found.map(|(_, path)| path.as_slice())
    }
}

fn entry(line: &[u8], at: usize) -> Result<(Oid, Vec<u8>)> {
    let wrong = || Error::corrupt(STRUCTURE, at, "a line that is not an OID, a space and a path");
    let space = line.iter().position(|&byte| byte == b' ').ok_or_else(wrong)?;
    let (oid, path) = line.split_at_checked(space).ok_or_else(wrong)?;
    let oid = std::str::from_utf8(oid).ok().and_then(|oid| oid.parse().ok()).ok_or_else(wrong)?;
    let path = path.get(1..).filter(|path| !path.is_empty()).ok_or_else(wrong)?;
    Ok((Oid(oid), path.to_vec()))
}
