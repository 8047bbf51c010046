//! Where a cluster's `postgresql.conf` is.
//!
//! In the data directory, unless the server was started otherwise: with `config_file` on its
//! command line, as Debian's scripts do, or with `-D` naming the directory of the configuration,
//! which in turn names the data. Where no server ever left its command line, Debian's place for
//! configuration is searched for a file that names this data directory.
//!
//! Source: `SelectConfigFiles` in `src/backend/utils/misc/guc.c`, PostgreSQL 14 to 18;
//! `/etc/postgresql/VERSION/CLUSTER` of Debian's postgresql-common.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::command_line::CommandLine;
use super::{SettingFiles, Settings};

const NAME: &str = "postgresql.conf";
const DEBIAN: &str = "/etc/postgresql";

/// The configuration file of the cluster in `directory`; where none is found, the one that its
/// data directory should have.
pub(super) fn configuration_file(
    directory: &Path,
    major: u32,
    started: &CommandLine,
    files: &dyn SettingFiles,
) -> PathBuf {
    let own = directory.join(NAME);
    let named = started.path("config_file");
    let beside = started.directory.as_ref().filter(|found| found.is_absolute());
    let candidates = [named, Some(own.clone()), beside.map(|found| found.join(NAME))];
    candidates
        .into_iter()
        .flatten()
        .find(|path| files.read(path).is_ok())
        .or_else(|| debian_file(directory, major, files))
        .unwrap_or(own)
}

fn debian_file(directory: &Path, major: u32, files: &dyn SettingFiles) -> Option<PathBuf> {
    let clusters = Path::new(DEBIAN).join(major.to_string());
    let mut names = files.directories(&clusters).ok()?;
    names.sort_unstable();
    let mut candidates = names.iter().map(|name| clusters.join(name).join(NAME));
    candidates.find(|path| {
        let settings = Settings::parse(path, None, files);
        let data = settings.get("data_directory");
        data.is_some_and(|data| {
            files.is_same(Path::new(std::ffi::OsStr::from_bytes(data)), directory)
        })
    })
}
