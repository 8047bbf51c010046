//! What the binary can do: each contestant's flags are tried before anything is measured.
//!
//! They are tried on a directory that does not exist. A command line that the binary does not know is refused for its
//! words; one that it knows is refused for the directory. So a benchmark of methods that are being built runs with those that are there,
//! and names the rest.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::rows::Contestant;

/// How the command line is refused for a flag or a value that is not there.
const REFUSALS: [&str; 2] = ["unexpected argument", "invalid value"];

const AUTO: [&str; 2] = ["--io-method", "auto"];

/// The binary and what is known of its flags.
pub(super) struct Probe {
    binary: PathBuf,
    /// Flags, and the words they were refused with.
    tried: RefCell<BTreeMap<Vec<&'static str>, Option<String>>>,
}

impl Probe {
    pub(super) fn new(binary: &Path) -> Self {
        Self { binary: binary.to_owned(), tried: RefCell::default() }
    }

    /// Why the binary does not know these flags of `count`; none when it does.
    pub(super) fn refusal(&self, flags: &[&'static str]) -> Option<String> {
        if let Some(known) = self.tried.borrow().get(flags) {
            return known.clone();
        }
        let mut command = Command::new(&self.binary);
        command.args(["count", "-D", "/nonexistent/pagemill-probe", "-d", "postgres", "-t", "t"]);
        let said = command.args(flags).output().map(|output| output.stderr).unwrap_or_default();
        let refusal = refusal_in(&String::from_utf8_lossy(&said));
        self.tried.borrow_mut().insert(flags.to_vec(), refusal.clone());
        refusal
    }

    /// The flags of a contestant as this binary understands them; none for one that is not pagemill.
    pub(super) fn flags(&self, contestant: &Contestant) -> Option<Vec<&'static str>> {
        match contestant {
            Contestant::Pagemill { flags } => Some(flags.clone()),
            Contestant::Auto { flags } if self.refusal(&AUTO).is_some() => Some(flags.clone()),
            Contestant::Auto { flags } => Some([&AUTO, flags.as_slice()].concat()),
            _ => None,
        }
    }

    /// Why a contestant is not built yet.
    pub(super) fn missing(&self, contestant: &Contestant) -> Option<String> {
        self.refusal(&self.flags(contestant)?)
    }
}

/// The refusal of the words in what a command said, without the program's name.
fn refusal_in(said: &str) -> Option<String> {
    let line = said.lines().find(|line| REFUSALS.iter().any(|refusal| line.contains(refusal)))?;
    let start = REFUSALS.iter().filter_map(|refusal| line.find(refusal)).min()?;
    let words = line.get(start..)?;
    Some(words.split(" found").next().unwrap_or(words).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_flag_is_told_from_a_missing_directory() {
        let flag = "pagemill: unexpected argument '--backward' found (--help shows the usage)\n";
        assert_eq!(refusal_in(flag), Some("unexpected argument '--backward'".to_owned()));
        assert_eq!(refusal_in("pagemill: /x: not a PostgreSQL data directory\n"), None);
    }
}
