//! Where an export goes, and the names of files when it goes to a directory.
//!
//! Invariant: two tables never get the same file.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use anyhow::Result;
use pagemill_cluster::Cluster;
use pagemill_engine::Selected;
use pagemill_io::HostFiles;

use crate::output_paths::refuse_in_cluster;
use pagemill_cli::export_arguments::ExportFormat;
use pagemill_cli::table_files::table_stem;

/// Where an export goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    /// To standard output.
    Standard,
    /// To one file.
    File(PathBuf),
    /// To one file per table.
    Directory(PathBuf),
}

impl Destination {
    /// What `-o` names: a directory if there is one, or if the name ends with a slash.
    pub(crate) fn of(option: Option<&Path>, host: &HostFiles) -> Self {
        match option {
            None => Self::Standard,
            Some(path) if path.as_os_str().as_bytes().ends_with(b"/") || host.is_dir(path) => {
                Self::Directory(path.into())
            }
            Some(path) => Self::File(path.into()),
        }
    }

    /// Refuses a place in a cluster. A file written there could take the place of one of the cluster's own.
    ///
    /// # Errors
    /// Names the directory.
    pub(crate) fn refuse_inside(&self, cluster: &Cluster) -> Result<()> {
        match self {
            Self::Standard => Ok(()),
            Self::File(path) | Self::Directory(path) => refuse_in_cluster("-o", path, cluster),
        }
    }

    /// Makes the directory, if it is one and missing.
    pub(crate) fn create(&self, host: &HostFiles) -> Result<()> {
        match self {
            Self::Directory(path) if !host.is_dir(path) => Ok(host.create_dir(path)?),
            _ => Ok(()),
        }
    }
}

/// The name of a table's file in a directory.
pub(crate) fn file_name(table: &Selected, format: ExportFormat) -> OsString {
    let mut name = table_stem(table);
    name.extend(format.extension().as_bytes());
    OsString::from_vec(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_told_by_its_slash_or_by_being_there() {
        let dir = tempfile::tempdir().unwrap();
        let host = HostFiles::real();
        let of = |path| Destination::of(path, &host);
        assert_eq!(of(None), Destination::Standard);
        assert_eq!(of(Some(dir.path())), Destination::Directory(dir.path().into()));
        let missing = dir.path().join("x/");
        assert_eq!(of(Some(&missing)), Destination::Directory(missing.clone()));
        let file = dir.path().join("x");
        assert_eq!(of(Some(&file)), Destination::File(file.clone()));
        Destination::Directory(missing.clone()).create(&host).unwrap();
        assert!(missing.is_dir());
    }
}
