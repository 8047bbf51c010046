//! A directory copied with all that is in it.
//!
//! Invariant: files, directories and symbolic links come with their contents and permissions; sockets and pipes are
//! left out. Nothing is synced.

use std::io;
use std::path::Path;

/// Copies `from` to `to`, which must not exist.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (here, there) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&here, &there)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&here)?, &there)?;
        } else if kind.is_file() {
            std::fs::copy(&here, &there)?;
        }
    }
    std::fs::set_permissions(to, std::fs::metadata(from)?.permissions())
}
