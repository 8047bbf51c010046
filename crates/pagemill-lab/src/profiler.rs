//! Flame graphs: a turn watched by the system's `perf`, and its samples as folded stacks.
//!
//! ```text
//! perf record, asleep ── "enable" ─► turn ─► "disable" ── … ─► SIGINT ─► its file ─► perf script ─► folded stacks
//! ```
//!
//! Stacks are unwound from copies of them (`dwarf`), as release builds keep no frame pointers. perf is told by its control
//! pipe when a turn begins and ends, so that nothing else is in the picture. Invariants: whatever happens, perf and its files
//! are gone when a [`Recording`] is, and the files lie in the run's own directory, for the case of a kill; the first refusal
//! is kept with its reason and its remedy, and nothing is tried again; neither time nor size is without bound.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::folded_stacks::fold;
use crate::report::printable;
use crate::results::{Warning, WarningKind};

/// Samples per second of each processor at work.
const FREQUENCY: &str = "999";
/// Bytes of each stack that are copied: what frames from a turn to a call need.
const CALL_GRAPH: &str = "dwarf,16384";
/// Size of the file at which perf ends by itself.
const MOST_BYTES: &str = "32M";
/// How long perf may take to answer, to end, and to print what it saw.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often is looked whether it did.
const GLANCE: Duration = Duration::from_millis(10);
/// A turn is watched again until this much was seen of it,
const ENOUGH: Duration = Duration::from_millis(500);
/// unless so much time passed, with what comes before each turn.
const LONGEST: Duration = Duration::from_secs(3);

/// The function below which a turn begins: see `crate::runner`.
const TOP: &str = "perform_turn";
/// The function that talks to perf, which is no part of a turn.
const ASIDE: &str = "Recording::tell";

/// Watches turns, as long as that works.
#[derive(Debug)]
pub struct Profiler {
    program: PathBuf,
    directory: PathBuf,
    refusal: RefCell<Option<Warning>>,
    /// Something was seen at all, and something of the kernel.
    seen: Cell<(bool, bool)>,
}

impl Profiler {
    /// One that has its files in `directory`.
    pub fn new(directory: &Path) -> Self {
        Self::with_program("perf", directory)
    }

    fn with_program(program: impl Into<PathBuf>, directory: &Path) -> Self {
        let (program, directory) = (program.into(), directory.into());
        Self { program, directory, refusal: RefCell::default(), seen: Cell::default() }
    }

    /// Why there are no flame graphs, or but half of them, if so.
    pub fn refusal(&self) -> Option<Warning> {
        let half = || {
            let message = "flame graphs show no time of the kernel, which perf was not let see";
            (self.seen.get() == (true, false)).then(|| Warning {
                kind: WarningKind::Privileges,
                group: None,
                message: message.into(),
                remedy: permission(),
            })
        };
        self.refusal.borrow().clone().or_else(half)
    }

    /// Takes note of whose functions were seen.
    fn note_seen(&self, printed: &str) {
        let (any, kernel) = self.seen.get();
        self.seen.set((any || !printed.trim().is_empty(), kernel || printed.contains("([kernel.")));
    }

    /// Folded stacks of what `turn` does, which is called until enough was seen; `None` where nothing was, or perf does not
    /// work here.
    ///
    /// # Errors
    /// Those of `turn`, and the wish to end the run.
    pub fn profile(
        &self,
        cancel: &Cancel,
        mut turn: impl FnMut(&mut Recording<'_>) -> Result<()>,
    ) -> Result<Option<String>> {
        if self.refusal.borrow().is_some() {
            return Ok(None);
        }
        let mut recording = match self.settled(Recording::start(self, cancel))? {
            Some(recording) => recording,
            None => return Ok(None),
        };
        let begin = Instant::now();
        loop {
            turn(&mut recording)?;
            if recording.watched >= ENOUGH || recording.ended || begin.elapsed() >= LONGEST {
                break;
            }
        }
        let folded = self.settled(recording.finish())?;
        Ok(folded.filter(|folded| !folded.is_empty()))
    }

    /// Notes a refusal.
    fn settled<T>(&self, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(Error::Interrupted) => Err(Error::Interrupted),
            Err(error) => {
                *self.refusal.borrow_mut() = Some(self.warning(&error));
                Ok(None)
            }
        }
    }

    fn warning(&self, error: &Error) -> Warning {
        let missing = error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound);
        let (why, remedy) = match missing {
            true => ("there is no program perf here".into(), INSTALL.into()),
            false => (error.to_string(), permission()),
        };
        let why = why.replace(&format!("{}/", self.directory.display()), "");
        Warning {
            kind: WarningKind::Privileges,
            group: None,
            message: printable(&format!("no flame graphs: {why}")),
            remedy,
        }
    }
}

const INSTALL: &str =
    "install it: linux-perf in Debian, linux-tools-generic in Ubuntu, perf in most others";

fn permission() -> String {
    let file = "/proc/sys/kernel/perf_event_paranoid";
    let now = std::fs::read_to_string(file).map(|text| format!(" (it is {})", text.trim()));
    format!(
        "run it as root, or allow it: sysctl kernel.perf_event_paranoid=1{}; a container needs CAP_PERFMON and a \
         sandbox that lets perf_event_open pass",
        now.unwrap_or_default()
    )
}

/// perf at work on this process.
#[derive(Debug)]
pub struct Recording<'p> {
    profiler: &'p Profiler,
    cancel: &'p Cancel,
    perf: Child,
    control: ChildStdin,
    answers: ChildStdout,
    /// How long it was awake.
    watched: Duration,
    /// It ended by itself, as its file was full, or does not answer.
    ended: bool,
    /// Why it does not.
    trouble: Option<Error>,
}

impl<'p> Recording<'p> {
    fn start(profiler: &'p Profiler, cancel: &'p Cancel) -> Result<Self> {
        // A file, as it says a line each time it is woken, and would wait for a pipe that nobody reads.
        let said = File::create(said(profiler)).map_err(Error::system("perf"))?;
        let mut perf = Command::new(&profiler.program)
            .args(["record", "-F", FREQUENCY, "--call-graph", CALL_GRAPH, "--max-size", MOST_BYTES])
            .args(["--delay=-1", "--control", "fd:0,1", "--no-buildid", "--no-buildid-cache"])
            .args(["-p", &std::process::id().to_string(), "-o"])
            .arg(data(profiler))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said)
            .spawn()
            .map_err(|error| {
                remove_files(profiler);
                Error::system("perf")(error)
            })?;
        let (control, answers) = match (perf.stdin.take(), perf.stdout.take()) {
            (Some(control), Some(answers)) => (control, answers),
            _ => {
                end(&mut perf);
                remove_files(profiler);
                return Err(Error::system("perf")(io::ErrorKind::BrokenPipe.into()));
            }
        };
        let (watched, ended, trouble) = (Duration::ZERO, false, None);
        let mut recording =
            Self { profiler, cancel, perf, control, answers, watched, ended, trouble };
        // It answers once all its events are open, or ends with the reason why they are not.
        if !recording.tell("disable")? {
            return Err(recording.complaint());
        }
        Ok(recording)
    }

    /// Does a turn's work under its eyes.
    pub fn watch<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.wake("enable");
        let begin = Instant::now();
        let done = work();
        self.watched += begin.elapsed();
        self.wake("disable");
        done
    }

    /// Lets perf begin or cease to look; what keeps it from that is told at the end.
    fn wake(&mut self, command: &str) {
        match self.tell(command) {
            Ok(alive) => self.ended |= !alive,
            Err(error) => {
                self.ended = true;
                self.trouble.get_or_insert(error);
            }
        }
    }

    /// Tells perf something and waits for its answer; false when it has ended.
    #[inline(never)]
    fn tell(&mut self, command: &str) -> Result<bool> {
        // In one write: perf takes what has come for the whole command.
        if self.ended || self.control.write_all(format!("{command}\n").as_bytes()).is_err() {
            return Ok(false);
        }
        let fault = || Error::system("perf");
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            self.cancel.check()?;
            let mut entries = [PollFd::new(&self.answers, PollFlags::IN)];
            let wait = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            match poll(&mut entries, Some(&wait)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(fault()(error.into())),
            }
            let mut answer = [0; 64];
            let len = self.answers.read(&mut answer).map_err(fault())?;
            if len == 0 || answer.contains(&b'\n') {
                return Ok(len > 0);
            }
        }
        Err(fault()(io::Error::new(io::ErrorKind::TimedOut, "it does not answer")))
    }

    /// What perf said when it ended: the first line that says something.
    fn complaint(&mut self) -> Error {
        end(&mut self.perf);
        // Without it the reason stays unknown.
        let said = std::fs::read(said(self.profiler)).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let is_told =
            |line: &&str| !line.is_empty() && *line != "Error:" && !line.starts_with("Events ");
        let line = said.lines().map(str::trim).find(is_told).unwrap_or("it ended without a word");
        let line: String = line.chars().take(300).collect();
        Error::system("perf cannot watch this process")(io::Error::other(line))
    }

    /// Ends perf and reads what it saw.
    fn finish(mut self) -> Result<String> {
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble);
        }
        if let Some(pid) = Pid::from_raw(i32::try_from(self.perf.id()).unwrap_or(0)) {
            // It may have ended already.
            let _ = kill_process(pid, Signal::INT);
        }
        wait(&mut self.perf, self.cancel)?;
        if std::fs::metadata(data(self.profiler)).is_ok_and(|found| found.len() > 0) {
            let printed = self.printed()?;
            self.profiler.note_seen(&printed);
            Ok(fold(&printed, TOP, ASIDE))
        } else {
            Err(self.complaint())
        }
    }

    /// What `perf script` makes of its file.
    fn printed(&self) -> Result<String> {
        let (data, path) = (data(self.profiler), text(self.profiler));
        let printed = File::create(&path).map_err(Error::file(&path))?;
        let mut script = Command::new(&self.profiler.program)
            .args(["script", "--force", "--no-inline", "-F", "comm,tid,ip,sym,dso", "-i"])
            .arg(&data)
            // Symbols from the net would take minutes.
            .env_remove("DEBUGINFOD_URLS")
            .stdin(Stdio::null())
            .stdout(printed)
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::system("perf script"))?;
        let status = wait(&mut script, self.cancel);
        end(&mut script);
        if !status? {
            return Err(Error::system("perf script")(io::Error::other("it failed")));
        }
        let bytes = std::fs::read(&path).map_err(Error::file(&path))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        end(&mut self.perf);
        remove_files(self.profiler);
    }
}

fn remove_files(profiler: &Profiler) {
    for path in [data(profiler), text(profiler), said(profiler)] {
        // Some are not there if perf was refused; what stays is in the run's own directory.
        let _ = std::fs::remove_file(path);
    }
}

fn data(profiler: &Profiler) -> PathBuf {
    profiler.directory.join("perf.data")
}

fn text(profiler: &Profiler) -> PathBuf {
    profiler.directory.join("perf.txt")
}

/// What it says of itself.
fn said(profiler: &Profiler) -> PathBuf {
    profiler.directory.join("perf.said")
}

/// Ends a process, however it stands.
fn end(child: &mut Child) {
    // Both fail for one that has ended and was waited for.
    let _ = child.kill();
    let _ = child.wait();
}

/// Waits for the end of a process: true if it succeeded.
fn wait(child: &mut Child, cancel: &Cancel) -> Result<bool> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        cancel.check()?;
        if let Some(status) = child.try_wait().map_err(Error::system("perf"))? {
            return Ok(status.success());
        }
        std::thread::sleep(GLANCE);
    }
    Err(Error::system("perf")(io::Error::new(io::ErrorKind::TimedOut, "it does not end")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A program that stands for perf.
    fn stand_in(directory: &Path, lines: &str) -> Profiler {
        let (path, source) = (directory.join("perf"), directory.join("source"));
        std::fs::write(&source, format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(&source, std::fs::Permissions::from_mode(0o755)).unwrap();
        // A file that this process ever wrote to may be busy: another test's child can have it open.
        assert!(Command::new("cp").args([&source, &path]).status().unwrap().success());
        std::fs::remove_file(source).unwrap();
        Profiler::with_program(path, directory)
    }

    fn nothing(_: &mut Recording<'_>) -> Result<()> {
        Ok(())
    }

    /// The warning after a try; the second try is none.
    fn refusal(profiler: &Profiler) -> Warning {
        let cancel = Cancel::default();
        assert_eq!(profiler.profile(&cancel, nothing).unwrap(), None);
        let unreachable = |_: &mut Recording<'_>| panic!("it was refused");
        assert_eq!(profiler.profile(&cancel, unreachable).unwrap(), None);
        profiler.refusal().unwrap()
    }

    #[test]
    fn without_perf_it_is_told_how_to_get_it() {
        let dir = tempfile::tempdir().unwrap();
        let found = refusal(&Profiler::with_program("/nowhere/perf", dir.path()));
        assert!(found.message.contains("no program perf"), "{found:?}");
        assert!(found.remedy.contains("linux-perf"), "{found:?}");
    }

    #[test]
    fn a_perf_that_is_refused_says_why_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let said = "echo Error: >&2; echo 'Access is limited.' >&2; touch \"$(dirname $0)/perf.data\"; exit 255";
        let found = refusal(&stand_in(dir.path(), said));
        assert!(found.message.ends_with("Access is limited."), "{found:?}");
        assert!(found.remedy.contains("perf_event_paranoid"), "{found:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_run_that_is_ended_takes_perf_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let profiler = stand_in(dir.path(), "echo $$ > \"$(dirname $0)/pid\"; exec sleep 60");
        let cancel = Cancel::default();
        cancel.cancel();
        let outcome = profiler.profile(&cancel, nothing);
        assert!(matches!(outcome, Err(Error::Interrupted)), "{outcome:?}");
        let running = std::fs::read_to_string(dir.path().join("pid")).ok();
        let running = running.map(|pid| Path::new("/proc").join(pid.trim()));
        assert!(running.is_none_or(|pid| !pid.exists()));
        assert_eq!(profiler.refusal(), None);
    }

    #[test]
    fn what_a_turn_does_is_seen_and_nothing_stays() {
        let dir = tempfile::tempdir().unwrap();
        let profiler = Profiler::new(dir.path());
        let work = || {
            let begin = Instant::now();
            while begin.elapsed() < ENOUGH {
                std::hint::black_box(dir.path().exists());
            }
        };
        let folded = profiler.profile(&Cancel::default(), |recording| {
            recording.watch(work);
            Ok(())
        });
        match (folded.unwrap(), profiler.refusal()) {
            (Some(folded), None) => {
                assert_eq!(profiler.seen.get(), (true, true));
                let lines = folded.lines().map(|line| line.rsplit_once(' ').unwrap());
                let seen: u64 = lines.map(|(_, count)| count.parse::<u64>().unwrap()).sum();
                assert!(seen > 50, "{folded}");
            }
            (_, why) => eprintln!("SKIPPED: {why:?}"),
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
