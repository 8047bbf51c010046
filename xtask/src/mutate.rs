//! `cargo xtask mutate`: the redo functions broken on purpose, one way at a time, to see whether the tests notice.
//!
//! ```text
//! mutations.txt ─► a copy of the tree, broken in one place ─► the crate's own tests ─► the record oracle ─► it survived
//! ```
//!
//! The crate's own tests are quick, so the oracle is asked only about what they let pass. It has servers work once, and walks
//! that work again for each mutation. Invariants: this tree is never changed; a mutation counts as noticed only when tests
//! fail, so one that does not compile, or no longer fits the code, is an error; and the tests pass before the first.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::workspace;

/// The crate that is broken, and where the ways to break it are written down.
const CRATE: &str = "crates/pagemill-redo";
const MUTATIONS: &str = "crates/pagemill-redo/mutations.txt";
/// What walks the work of servers again, and where the tests that leave it say that it lies.
const WALK: &str = "records_of_any_work_make_of_pages_what_the_server_made_of_them";
const BEFORE: &str = "ORACLE_BEFORE=";
const AFTER: &str = "ORACLE_AFTER=";
/// A broken function may never end.
const LONGEST_TEST: Duration = Duration::from_secs(300);

/// Which mutations are tried, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only mutations whose line `FILE: what is wrong` contains one of these
    words: Vec<String>,
    /// List the mutations, and try none
    #[arg(long)]
    list: bool,
    /// Run the crate's own tests alone, and no servers
    #[arg(long)]
    no_oracle: bool,
}

/// One way to break a function.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mutation {
    /// The file, below `src` of the crate.
    file: String,
    /// What is wrong then.
    what: String,
    old: String,
    new: String,
}

/// Tries mutations and tells which survive; true when none does.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let root = workspace::root();
    let all = Mutation::read_all(&fs::read_to_string(root.join(MUTATIONS))?)?;
    let is_wanted = |mutation: &&Mutation| {
        let told = mutation.told();
        arguments.words.is_empty() || arguments.words.iter().any(|word| told.contains(word))
    };
    let wanted: Vec<&Mutation> = all.iter().filter(is_wanted).collect();
    ensure!(!wanted.is_empty(), "no mutation of {MUTATIONS} is named so");
    if arguments.list {
        wanted.iter().for_each(|mutation| println!("{}", mutation.told()));
        return Ok(true);
    }
    let tree = BrokenTree::copy_of(&root)?;
    let oracle = match arguments.no_oracle {
        true => Vec::new(),
        false => tree.work_of_servers()?,
    };
    tree.passes_unbroken(&oracle)?;
    let mut survivors = Vec::new();
    for mutation in &wanted {
        let start = Instant::now();
        let fate = tree.fate(mutation, &oracle).with_context(|| mutation.told())?;
        println!("{:>6.1} s  {:<24}  {}", start.elapsed().as_secs_f64(), fate, mutation.told());
        if fate == Fate::Survived {
            survivors.push(mutation.told());
        }
    }
    println!("{} tried, {} survived", wanted.len(), survivors.len());
    survivors.iter().for_each(|told| println!("survived: {told}"));
    Ok(survivors.is_empty())
}

/// What became of a mutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    NoticedByTests,
    NoticedByOracle,
    Survived,
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::NoticedByTests => "noticed by the tests",
            Self::NoticedByOracle => "noticed by the oracle",
            Self::Survived => "SURVIVED",
        })
    }
}

impl Mutation {
    /// The mutations of a file that is written as its head says.
    fn read_all(text: &str) -> Result<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        for part in text.split("\n\n").map(|part| part.trim_matches('\n')) {
            let lines: Vec<&str> = part.lines().filter(|line| !line.starts_with("# ")).collect();
            let Some((head, rest)) = lines.split_first().filter(|(head, _)| **head != "#") else {
                continue;
            };
            let (file, what) = head.split_once(": ").with_context(|| (*head).to_owned())?;
            let arrow = rest.iter().position(|line| *line == "=>");
            let arrow = arrow.with_context(|| format!("no => after {head:?}"))?;
            let (old, new) = (rest[..arrow].join("\n"), rest[arrow + 1..].join("\n"));
            ensure!(!old.is_empty() && old != new, "{head:?} changes nothing");
            all.push(Self { file: file.to_owned(), what: what.to_owned(), old, new });
        }
        Ok(all)
    }

    fn told(&self) -> String {
        format!("{}: {}", self.file, self.what)
    }

    /// The file with this in it.
    fn applied(&self, source: &str) -> Result<String> {
        match source.matches(&self.old).count() {
            1 => Ok(source.replacen(&self.old, &self.new, 1)),
            count => {
                bail!("{} has {count} times what it is to be broken at: {}", self.file, self.what)
            }
        }
    }
}

/// The files that servers began with and ended with.
#[derive(Debug)]
struct ServerWork {
    before: PathBuf,
    after: PathBuf,
}

impl ServerWork {
    /// From the line with which the oracle says what it left.
    fn read(line: &str) -> Option<Self> {
        let path = |name| line.split(name).nth(1)?.split_whitespace().next().map(PathBuf::from);
        Some(Self { before: path(BEFORE)?, after: path(AFTER)? })
    }
}

/// It was left for us.
impl Drop for ServerWork {
    fn drop(&mut self) {
        for data in [&self.before, &self.after] {
            if let Some(cluster) = data.parent() {
                let _ = fs::remove_dir_all(cluster);
            }
        }
    }
}

/// The copy that is broken, and what is built of it.
struct BrokenTree {
    tree: PathBuf,
    target: PathBuf,
}

impl BrokenTree {
    /// Files that are the same stay, so that cargo builds nothing again for them.
    fn copy_of(root: &Path) -> Result<Self> {
        let place = workspace::target_directory(root).join("mutate");
        let tree = place.join("tree");
        for file in workspace::files(root)? {
            let (from, to) = (root.join(&file), tree.join(&file));
            let Ok(bytes) = fs::read(&from) else { continue };
            if fs::read(&to).is_ok_and(|old| old == bytes) {
                continue;
            }
            fs::create_dir_all(to.parent().context("a file at the root")?)?;
            fs::write(&to, bytes).with_context(|| to.display().to_string())?;
        }
        Ok(Self { tree, target: place.join("target") })
    }

    /// Cargo, in the copy.
    fn cargo(&self, words: &[&str]) -> Command {
        let mut command = workspace::cargo();
        command.args(words).current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        // What is broken on purpose may leave names unused.
        command.env("RUSTFLAGS", "--cap-lints=allow");
        command
    }

    /// Has servers work for the oracle, once.
    fn work_of_servers(&self) -> Result<Vec<ServerWork>> {
        println!("servers work for the oracle");
        let words = ["test", "-q", "-p", "pagemill-wal", "--test", "record_oracle", "--"];
        let mut command = self.cargo(&[&words[..], &["--nocapture", "every_record"]].concat());
        let output = command.env("ORACLE_KEEP", "1").stderr(Stdio::inherit()).output()?;
        let told = String::from_utf8_lossy(&output.stdout);
        let work: Vec<_> = told.lines().filter_map(ServerWork::read).collect();
        ensure!(output.status.success() && !work.is_empty(), "the oracle fails as it is: {told}");
        Ok(work)
    }

    fn passes_unbroken(&self, oracle: &[ServerWork]) -> Result<()> {
        self.build(oracle)?;
        ensure!(self.tests_pass()?, "the tests of {CRATE} fail before anything is broken");
        for work in oracle {
            ensure!(self.oracle_passes(work)?, "the oracle fails before anything is broken");
        }
        let passes = oracle.is_empty() || self.samples_pass()?;
        ensure!(passes, "the oracle on samples fails before anything is broken");
        Ok(())
    }

    /// What becomes of a mutation. The copy is whole again afterwards.
    fn fate(&self, mutation: &Mutation, oracle: &[ServerWork]) -> Result<Fate> {
        let path = self.tree.join(CRATE).join("src").join(&mutation.file);
        let source = fs::read_to_string(&path)?;
        fs::write(&path, mutation.applied(&source)?)?;
        let fate = self.fate_as_it_is(oracle);
        fs::write(&path, source)?;
        fate
    }

    fn fate_as_it_is(&self, oracle: &[ServerWork]) -> Result<Fate> {
        self.build(&[])?;
        if !self.tests_pass()? {
            return Ok(Fate::NoticedByTests);
        }
        if !oracle.is_empty() {
            self.build(oracle)?;
        }
        for work in oracle {
            if !self.oracle_passes(work)? {
                return Ok(Fate::NoticedByOracle);
            }
        }
        if !oracle.is_empty() && !self.samples_pass()? {
            return Ok(Fate::NoticedByOracle);
        }
        Ok(Fate::Survived)
    }

    fn build(&self, oracle: &[ServerWork]) -> Result<()> {
        let mut built = vec![["-p", "pagemill-redo", "--lib"]];
        if !oracle.is_empty() {
            built.push(["-p", "pagemill-wal", "--test=record_*"]);
        }
        for words in built {
            let output =
                self.cargo(&[&["test", "-q", "--no-run"], &words[..]].concat()).output()?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    fn tests_pass(&self) -> Result<bool> {
        passes(&mut self.cargo(&["test", "-q", "-p", "pagemill-redo", "--lib"]))
    }

    fn oracle_passes(&self, work: &ServerWork) -> Result<bool> {
        let words = ["test", "-q", "-p", "pagemill-wal", "--test", "record_oracle", "--"];
        let mut command = self.cargo(&[&words[..], &["--ignored", "--exact", WALK]].concat());
        let places = [("ORACLE_BEFORE", &work.before), ("ORACLE_AFTER", &work.after)];
        passes(command.envs(places))
    }

    /// The same walk over what servers wrote that are not on this machine.
    fn samples_pass(&self) -> Result<bool> {
        passes(&mut self.cargo(&["test", "-q", "-p", "pagemill-wal", "--test", "record_samples"]))
    }
}

/// True when a command succeeds in time; what it prints is kept from the screen.
fn passes(command: &mut Command) -> Result<bool> {
    use std::os::unix::process::CommandExt as _;

    // A group of its own, so that the test ends with the cargo that runs it.
    let command = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().context("starting cargo")?;
    let output = child.stdout.take().context("no pipe to the tests")?;
    let reader = std::thread::spawn(move || {
        let mut output = output;
        let _ = output.read_to_end(&mut Vec::new());
    });
    let passed = ends_well(&mut child)?;
    let _ = reader.join();
    Ok(passed)
}

fn ends_well(child: &mut Child) -> Result<bool> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if start.elapsed() > LONGEST_TEST {
            let group = format!("-{}", child.id());
            Command::new("kill").args(["-KILL", "--", &group]).status()?;
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutation_still_fits_the_code() {
        let root = workspace::root();
        let text = fs::read_to_string(root.join(MUTATIONS)).unwrap();
        let all = Mutation::read_all(&text).unwrap();
        assert_eq!(all.len(), text.lines().filter(|line| *line == "=>").count());
        assert!(all.len() > 80, "{}", all.len());
        for mutation in all {
            let path = root.join(CRATE).join("src").join(&mutation.file);
            mutation.applied(&fs::read_to_string(path).unwrap()).unwrap();
        }
    }

    #[test]
    fn lines_are_taken_as_they_are_and_may_be_taken_away() {
        let text = "# a head\n\na.rs: it is two\n1\n    + 1\n=>\n2\n\nb.rs: it is not\nyes\n=>\n";
        let all = Mutation::read_all(text).unwrap();
        let told: Vec<_> = all.iter().map(Mutation::told).collect();
        assert_eq!(told, ["a.rs: it is two", "b.rs: it is not"]);
        assert_eq!(all[0].applied("let a = 1\n    + 1;").unwrap(), "let a = 2;");
        assert_eq!(all[1].applied("yes;").unwrap(), ";");
        assert!(all[1].applied("no").is_err() && all[1].applied("yes, yes").is_err());
        assert!(Mutation::read_all("a.rs: it has no arrow\n1\n2\n").is_err());
    }

    #[test]
    fn what_the_oracle_left_is_found_in_its_line() {
        let work = ServerWork::read("ORACLE_BEFORE=/nowhere/a/data ORACLE_AFTER=/nowhere/b/data");
        let work = work.unwrap();
        assert_eq!(
            (work.before.as_path(), work.after.as_path()),
            (Path::new("/nowhere/a/data"), Path::new("/nowhere/b/data"))
        );
        assert!(ServerWork::read("running 3 tests").is_none());
    }
}
