//! The test programs of a workspace, as many at a time as there are processors: many of them wait for servers and disks, or end with
//! one long test, and one after the other they would leave processors idle.
//!
//! Invariant: what a program printed is printed in one piece, once it has ended; each is run, whatever became of others.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// Tests at a time in each program.
const TESTS_AT_ONCE: &str = "2";

/// Those that take longest, begun first, so that none of them runs alone at the end.
const LONGEST: [&str; 20] = [
    "pagemill: /tests/backup_repositories/main.rs",
    "pagemill: /tests/clone/main.rs",
    "pagemill: /tests/export.rs",
    "pagemill: /tests/file_systems.rs",
    "pagemill: /tests/live_copies.rs",
    "pagemill: /tests/load_targets/main.rs",
    "pagemill: /tests/order_by.rs",
    "pagemill: /tests/recipes.rs",
    "pagemill: /tests/remote.rs",
    "pagemill-arrow: /tests/read_back.rs",
    "pagemill-engine: /tests/json_rows.rs",
    "pagemill-lab: /tests/lab.rs",
    "pagemill-wal: /tests/read_ahead.rs",
    "pagemill-wal: /tests/record_oracle.rs",
    "pagemill-serve: /tests/dump.rs",
    "pagemill-serve: /tests/rights.rs",
    "pagemill-serve: /tests/styles.rs",
    "pagemill-sql: /tests/answers.rs",
    "pagemill-sql: /tests/tables.rs",
    "pagemill-sql: /tests/workers.rs",
];

/// A program that cargo built.
#[derive(Debug, PartialEq, Eq)]
struct TestProgram {
    name: String,
    executable: PathBuf,
    /// Of its package.
    directory: PathBuf,
}

impl TestProgram {
    /// What is less is run earlier.
    fn place(&self) -> (bool, &Path, &str) {
        (!LONGEST.contains(&self.name.as_str()), &self.directory, &self.name)
    }
}

/// What tests read of their environment.
type Variables = Vec<(OsString, OsString)>;

/// Builds the programs by a command of `cargo test`, and runs them with its variables for tests; what each printed goes to `take`. True
/// if all passed.
pub(crate) fn run(command: &mut Command, take: impl FnMut(&str) + Send) -> Result<bool> {
    let Some(programs) = built(command)? else { return Ok(false) };
    let variables = variables(command);
    let queue = Mutex::new(VecDeque::from(programs));
    let (take, passed) = (Mutex::new(take), Mutex::new(true));
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || -> Result<()> {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(program) = next else { return Ok(()) };
            let (printed, has_passed) = run_one(&program, &variables)?;
            let mut take = take.lock().unwrap_or_else(PoisonError::into_inner);
            std::io::stdout().write_all(printed.as_bytes())?;
            printed.lines().for_each(&mut *take);
            *passed.lock().unwrap_or_else(PoisonError::into_inner) &= has_passed;
        }
    };
    let ended: Result<()> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        let mut ends = threads.into_iter().map(|thread| thread.join());
        ends.try_for_each(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    ended?;
    Ok(passed.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Those of the command that are for tests, and not for cargo.
fn variables(command: &Command) -> Variables {
    let for_tests = |name: &OsStr| name.as_encoded_bytes().starts_with(b"PAGEMILL_");
    let given = command.get_envs().filter(|(name, _)| for_tests(name));
    given.filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect()
}

/// The programs, the longest first; `None` where they could not be built, which cargo has told.
fn built(command: &mut Command) -> Result<Option<Vec<TestProgram>>> {
    command.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let output = command.stderr(Stdio::inherit()).output()?;
    let messages = String::from_utf8(output.stdout)?;
    let mut programs: Vec<TestProgram> = messages.lines().filter_map(program_of).collect();
    // Cargo tells them as they are ready.
    programs.sort_by(|a, b| a.place().cmp(&b.place()));
    Ok(output.status.success().then_some(programs))
}

fn program_of(message: &str) -> Option<TestProgram> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_test = message["profile"]["test"].as_bool()?;
    let executable = PathBuf::from(message["executable"].as_str()?);
    let directory = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let package = directory.file_name()?.to_string_lossy().into_owned();
    let name =
        format!("{package}: {}", message["target"]["src_path"].as_str()?.rsplit_once(&package)?.1);
    is_test.then_some(TestProgram { name, executable, directory })
}

/// All that it printed, and whether it passed.
fn run_one(program: &TestProgram, variables: &Variables) -> Result<(String, bool)> {
    let TestProgram { name, executable, directory } = program;
    // Into a file and not through a pipe, whose end would not come while a server that a test left behind holds it.
    let log = executable.with_extension("log");
    let to = File::create(&log).with_context(|| log.display().to_string())?;
    let mut command = Command::new(executable);
    command.current_dir(directory).env("CARGO_MANIFEST_DIR", directory);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        command.env("RUST_TEST_THREADS", TESTS_AT_ONCE);
    }
    let begun = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(to.try_clone()?).stderr(to).status();
    let passed = status.with_context(|| executable.display().to_string())?.success();
    let printed = std::fs::read(&log)?;
    std::fs::remove_file(&log)?;
    let printed = String::from_utf8_lossy(&printed);
    let took = begun.elapsed().as_secs_f64();
    Ok((format!("     Ran {name} in {took:.1} s\n{printed}"), passed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_told_from_all_else_that_cargo_builds() {
        let of = |is_test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/x/Cargo.toml","target":{{"src_path":"/w/crates/x/tests/a.rs"}},"profile":{{"test":{is_test}}},"executable":{executable}}}"#
            )
        };
        let found = program_of(&of(true, "\"/t/a-1\"")).unwrap();
        assert_eq!(found.name, "x: /tests/a.rs");
        assert_eq!((found.executable, found.directory), ("/t/a-1".into(), "/w/crates/x".into()));
        assert_eq!(program_of(&of(false, "\"/t/a\"")), None);
        assert_eq!(program_of(&of(true, "null")), None);
        assert_eq!(program_of("{}"), None);
        assert_eq!(program_of("no JSON"), None);
    }

    #[test]
    fn the_longest_come_first_and_the_rest_by_package_and_name() {
        let program = |name: &str| {
            let package = name.split(':').next().unwrap_or_default();
            let directory = Path::new("/w/crates").join(package);
            TestProgram { name: name.to_owned(), executable: PathBuf::new(), directory }
        };
        let mut programs =
            ["pagemill-sys: /src/lib.rs", "pagemill: /src/lib.rs", LONGEST[0]].map(program);
        programs.sort_by(|a, b| a.place().cmp(&b.place()));
        let names = programs.map(|program| program.name);
        assert_eq!(names, [LONGEST[0], "pagemill: /src/lib.rs", "pagemill-sys: /src/lib.rs"]);
    }

    #[test]
    fn each_of_the_longest_is_there() {
        let crates = crate::workspace::root().join("crates");
        for name in LONGEST {
            let (package, path) = name.split_once(": /").unwrap();
            assert!(crates.join(package).join(path).is_file(), "{name}");
        }
    }
}
