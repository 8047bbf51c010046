//! Where the tablespaces of a data directory lie, for a copy of which nobody restored the links.
//!
//! `pg_tblspc/OID` is a symbolic link to a tablespace. A copied data directory has the links of its original, which lead to
//! the original's files; one unpacked from tar files has none, and a `tablespace_map` that tells where they led. What a
//! caller knows better ([`TablespaceMapping`]) counts before both. From then on everything is read there, by a
//! [file system](pagemill_io::RedirectedFiles) that lies below all that reads the cluster.
//!
//! A link that leads to the files of a running server is refused where that is certain: where the copy names the data
//! directory it was copied from (`postmaster.pid`, `postmaster.opts`), a server runs on that, and its tablespace is the same
//! directory. A copy without these files tells nobody where it is from.
//!
//! Sources: `read_tablespace_map` in `src/backend/access/transam/xlogrecovery.c`, `CreateOptsFile` in
//! `src/backend/postmaster/postmaster.c`, PostgreSQL 14 to 18.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use pagemill_format::Oid;
use pagemill_format::backup::TablespaceMap;
use pagemill_io::{Node, Redirect, Storage};

use crate::data_directory::OpenOptions;
use crate::directory_state::{DirectoryState, SMALL_FILE_LIMIT};
use crate::error::{Error, Result};
use crate::lock_file::LockFile;
use crate::recovery::plan::read_tablespace_map;
use crate::refusal::{MappingCause, Refusal};
use crate::tablespace_mapping::{TablespaceMapping, check_uses, is_same, plain};

/// The command line that a server was last started with.
const OPTIONS_FILE: &str = "postmaster.opts";

/// A tablespace outside of the data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablespacePlace {
    /// Its number.
    pub oid: Oid,
    /// The directory as the link, or the map of a backup, names it.
    pub named: PathBuf,
    /// Where it is read.
    pub directory: PathBuf,
    /// There is a link that names it.
    pub has_link: bool,
}

impl TablespacePlace {
    /// True when it is not read where a link leads.
    pub fn is_elsewhere(&self) -> bool {
        !self.has_link || self.directory != self.named
    }
}

impl DirectoryState {
    /// The same directory with its tablespaces where they lie: where a mapping says, else where the link leads, else, in an
    /// unpacked backup without a link, where its `tablespace_map` says.
    ///
    /// # Errors
    /// Refused: a mapping of what is no tablespace, or to what is none; a link to the files of a running server, unless the
    /// options allow it, which is then a [warning](Self::warnings).
    pub fn with_tablespaces(
        self,
        mappings: &[TablespaceMapping],
        options: &OpenOptions,
    ) -> Result<Self> {
        let mut state = self.place_tablespaces(mappings)?;
        match state.live_tablespace()? {
            Some(refusal) if options.allow_inconsistent => state.warn(refusal.to_string()),
            Some(refusal) => return Err(Error::refused(refusal)),
            None => {}
        }
        Ok(state)
    }

    fn place_tablespaces(mut self, mappings: &[TablespaceMapping]) -> Result<Self> {
        let mut places = linked(self.storage(), self.path())?;
        for (oid, path) in self.tablespace_map()?.entries {
            if places.iter().all(|place| place.oid != oid) {
                let named = plain(Path::new(OsStr::from_bytes(&path)));
                let directory = named.clone();
                places.push(TablespacePlace { oid, named, directory, has_link: false });
            }
        }
        places.sort_by_key(|place| place.oid.0);
        let there: Vec<&Path> = places.iter().map(|place| &*place.named).collect();
        check_uses(self.storage(), &there, mappings).map_err(Error::refused)?;
        for place in &mut places {
            if let Some(new) = self.mapped(place, mappings)? {
                place.directory = new;
            }
        }
        self.set_tablespaces(places);
        Ok(self)
    }

    /// What tells where the links of an unpacked backup led; a directory in place of a link needs none.
    fn tablespace_map(&self) -> Result<TablespaceMap> {
        if !self.contains("tablespace_map") || !self.contains("backup_label") {
            return Ok(TablespaceMap::default());
        }
        let mut map = read_tablespace_map(self.storage(), self.path())?.unwrap_or_default();
        let link = |oid: Oid| self.path().join("pg_tblspc").join(oid.to_string());
        map.entries.retain(|(oid, _)| self.storage().node(&link(*oid)).is_err());
        Ok(map)
    }

    /// Where a mapping has a tablespace.
    fn mapped(
        &self,
        place: &TablespacePlace,
        mappings: &[TablespaceMapping],
    ) -> Result<Option<PathBuf>> {
        let is_of =
            |mapping: &&TablespaceMapping| is_same(self.storage(), &mapping.old, &place.named);
        let Some(TablespaceMapping { new, .. }) = mappings.iter().find(is_of) else {
            return Ok(None);
        };
        let version = self.version_directory();
        if !self.storage().exists(&new.join(&version))? {
            return Err(Error::refused(MappingCause::EmptyTarget { new: new.clone(), version }));
        }
        Ok(Some(new.clone()))
    }

    /// The first tablespace that is that of a running server on another directory, as a refusal.
    fn live_tablespace(&self) -> Result<Option<Refusal>> {
        if self.is_live() || self.tablespaces().is_empty() {
            return Ok(None);
        }
        let Some((server, pid)) = self.original_server()? else { return Ok(None) };
        let storage = self.storage();
        for TablespacePlace { oid, directory, .. } in self.tablespaces() {
            let own = storage.identity(directory).ok();
            let of_server = storage.identity(&server.join("pg_tblspc").join(oid.to_string())).ok();
            if own.is_some() && own == of_server {
                let link = self.path().join("pg_tblspc").join(oid.to_string());
                let directory = directory.clone();
                return Ok(Some(Refusal::LiveTablespace { link, directory, server, pid }));
            }
        }
        Ok(None)
    }

    /// The running server on the directory that this is a copy of, if the copy tells.
    fn original_server(&self) -> Result<Option<(PathBuf, i32)>> {
        if let Some(LockFile { pid, directory: Some(directory), .. }) = self.server_elsewhere() {
            return Ok(Some((directory.clone(), *pid)));
        }
        let Some(directory) = self.started_on()? else { return Ok(None) };
        let storage = self.storage();
        let is_other = match (storage.identity(&directory), storage.identity(self.path())) {
            (Ok(one), Ok(other)) => one != other,
            _ => false,
        };
        if !is_other {
            return Ok(None);
        }
        // What another account's server has there is not always to be read.
        let lock = LockFile::read(storage, &directory).unwrap_or_default();
        let lock = lock.filter(|lock| lock.is_of(storage, &directory));
        Ok(lock.map(|lock| (directory, lock.pid)))
    }

    /// The data directory that a server was started on when these files were its own.
    fn started_on(&self) -> Result<Option<PathBuf>> {
        if !self.contains(OPTIONS_FILE) {
            return Ok(None);
        }
        let text = self.storage().read_file(&self.path().join(OPTIONS_FILE), SMALL_FILE_LIMIT)?;
        Ok(data_directory_of(&text))
    }
}

/// The tablespaces that links lead to.
fn linked(storage: &Storage, path: &Path) -> Result<Vec<TablespacePlace>> {
    let links = path.join("pg_tblspc");
    let entries = match storage.read_dir(&links) {
        Ok(entries) => entries,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut places = Vec::new();
    for entry in entries {
        let Some(oid) = entry.name.to_str().and_then(|name| name.parse().ok()).map(Oid) else {
            continue;
        };
        let Node::Link { target } = storage.node(&links.join(&entry.name))? else { continue };
        let named = plain(&links.join(target));
        let directory = named.clone();
        places.push(TablespacePlace { oid, named, directory, has_link: true });
    }
    Ok(places)
}

/// The file system with tablespaces elsewhere, where there are such.
pub(crate) fn redirected(storage: &Storage, path: &Path, places: &[TablespacePlace]) -> Storage {
    let elsewhere = places.iter().filter(|place| place.is_elsewhere());
    let redirects: Vec<Redirect> = elsewhere
        .map(|place| Redirect {
            path: path.join("pg_tblspc").join(place.oid.to_string()),
            target: place.directory.clone(),
        })
        .collect();
    storage.redirected(redirects)
}

/// The data directory on a server's command line: a program, then each word in double quotes.
fn data_directory_of(options: &[u8]) -> Option<PathBuf> {
    let mut words = options.split(|&byte| byte == b'"').skip(1).step_by(2);
    let directory = loop {
        match words.next()? {
            b"-D" => break words.next()?,
            word => {
                if let Some(directory) = word.strip_prefix(b"-D") {
                    break directory;
                }
            }
        }
    };
    Some(PathBuf::from(OsStr::from_bytes(directory))).filter(|directory| directory.is_absolute())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::transaction_log::synthetic::SyntheticCluster;

    fn found(given: &str) -> Option<String> {
        data_directory_of(given.as_bytes()).map(|directory| directory.display().to_string())
    }

    #[test]
    fn the_data_directory_is_found_on_a_servers_command_line() {
        assert_eq!(found("/usr/bin/postgres \"-D\" \"/a b/c\"\n").as_deref(), Some("/a b/c"));
        let debian = "/usr/bin/postgres \"-c\" \"x=y\" \"-D/a\" \"-p\" \"5432\"\n";
        assert_eq!(found(debian).as_deref(), Some("/a"));
        for none in ["", "/usr/bin/postgres\n", "postgres \"-D\" \"data\"\n", "x \"-D\""] {
            assert_eq!(found(none), None, "{none}");
        }
    }

    fn mapping(old: &Path, new: &Path) -> TablespaceMapping {
        TablespaceMapping { old: old.to_owned(), new: new.to_owned() }
    }

    fn state(made: &SyntheticCluster) -> DirectoryState {
        DirectoryState::read(&Storage::real(), &made.path("")).unwrap()
    }

    #[test]
    fn a_tablespace_is_read_where_the_mapping_says_else_where_the_link_leads() {
        let made = SyntheticCluster::new(1000, 1, 1);
        made.open();
        let version = state(&made).version_directory();
        let outside = tempfile::tempdir().unwrap();
        let (old, new) = (outside.path().join("old"), outside.path().join("new"));
        for (directory, contents) in [(&old, "old"), (&new, "new")] {
            fs::create_dir_all(directory.join(&version).join("5")).unwrap();
            fs::write(directory.join(&version).join("5/7"), contents).unwrap();
        }
        fs::create_dir_all(made.path("pg_tblspc")).unwrap();
        symlink(&old, made.path("pg_tblspc/900")).unwrap();
        let read = |mappings: &[TablespaceMapping]| {
            let state = state(&made).with_tablespaces(mappings, &OpenOptions::default())?;
            let file = state.relation_directory(Oid(900), Oid(5)).join("7");
            Ok::<_, Error>(String::from_utf8(state.storage().read_file(&file, 10)?).unwrap())
        };
        assert_eq!(read(&[]).unwrap(), "old");
        assert_eq!(read(&[mapping(&old, &new)]).unwrap(), "new");
        let says = |mappings: &[TablespaceMapping]| read(mappings).unwrap_err().to_string();
        let stranger = says(&[mapping(&new, &old)]);
        assert!(stranger.contains("is no tablespace of this cluster, which has"), "{stranger}");
        let empty = says(&[mapping(&old, outside.path())]);
        assert!(empty.contains(&format!("has no {version} in it")), "{empty}");
        let twice = says(&[mapping(&old, &new), mapping(&old, &old)]);
        assert!(twice.contains("is mapped twice"), "{twice}");
    }
}
