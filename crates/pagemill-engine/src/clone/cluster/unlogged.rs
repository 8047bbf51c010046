//! Unlogged relations: a copy has them empty, as a server makes them after a crash.
//!
//! A relation with an init fork is unlogged. Its init fork becomes its main fork, segment by segment, and its other forks
//! are gone. A server does so only when it recovers, and a copy of a stopped cluster starts without recovery: so it is
//! done here.
//!
//! Source: `ResetUnloggedRelationsInDbspaceDir` in `src/backend/storage/file/reinit.c`, PostgreSQL 14 to 18.

use std::collections::HashSet;
use std::ffi::OsString;

use pagemill_format::Fork;

use super::left_out::RelationFile;

/// The unlogged relations of one directory.
pub(super) struct UnloggedRelations {
    numbers: HashSet<u32>,
}

impl UnloggedRelations {
    /// Finds them among the names of a directory.
    pub(super) fn among(names: &[OsString]) -> Self {
        let files = names.iter().filter_map(|name| RelationFile::parse(name.to_str()?));
        let numbers =
            files.filter(|file| file.fork == Fork::Init).map(|file| file.number).collect();
        Self { numbers }
    }

    /// True for a file that a reset removes.
    pub(super) fn is_reset(&self, name: &str) -> bool {
        RelationFile::parse(name)
            .is_some_and(|file| file.fork != Fork::Init && self.numbers.contains(&file.number))
    }

    /// The name of the file that a reset makes out of this one; `None` where it makes none.
    pub(super) fn main_of(&self, name: &str) -> Option<String> {
        let file = RelationFile::parse(name).filter(|file| file.fork == Fork::Init)?;
        Some(match file.segment {
            0 => file.number.to_string(),
            segment => format!("{}.{segment}", file.number),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlogged_relation_keeps_its_init_fork_alone_and_gets_its_main_fork_from_it() {
        let names = ["1", "1_vm", "2", "2_init", "2_init.1", "2.1", "2_fsm", "22", "x"];
        let names: Vec<OsString> = names.into_iter().map(OsString::from).collect();
        let found = UnloggedRelations::among(&names);
        let reset: Vec<_> =
            names.iter().filter(|name| found.is_reset(name.to_str().unwrap())).collect();
        assert_eq!(reset, ["2", "2.1", "2_fsm"]);
        assert_eq!(found.main_of("2_init").as_deref(), Some("2"));
        assert_eq!(found.main_of("2_init.1").as_deref(), Some("2.1"));
        assert_eq!(found.main_of("2_fsm"), None);
    }
}
