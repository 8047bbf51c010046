//! A shell on one database: lines in, answers out, as psql does it.
//!
//! ```text
//! terminal or stream ──Lines──► Cutter ──statements──► session ──► Output in the style ──► terminal, \o or \g FILE
//!                                      └─backslash──► commands, lists from the catalogs
//! ```
//!
//! Invariants: an error is told and the shell goes on; Ctrl-C ends what is being done, and never the shell.

mod branches;
mod commands;
mod completion;
mod copy;
mod cut;
mod describe;
mod large_objects;
mod lines;
mod running;
mod scripting;
mod target;
mod variables;

use std::io::{self, BufRead, BufWriter, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use pagemill_arrow::{ArrowOptions, FileFormat};
use pagemill_cli::failure::{self, Completion};
use pagemill_cli::session::stats::Work;
use pagemill_cluster::Cluster;
use pagemill_io::HostFiles;
use sqlparser::ast::Statement;
use tokio::runtime::Handle;

use crate::copy::after_copy;
use crate::error::{Error, Result, SqlState, StatementError, unsupported};
use crate::output::{Expanded, Output, OutputStyle, WholeFile};
use crate::session::{Answer, Session, SessionOptions, StatementMemory};
use branches::Branches;
use completion::Names;
use cut::{Cutter, Piece, Typed};
use lines::{Line, Lines, Stream, Terminal};
use running::{Gate, interruptible};
pub use target::Target;
use variables::Variables;

/// Bytes of a file of statements, at most.
pub const MOST_BYTES: u64 = 1 << 30;
/// Files that include each other, at most.
const MOST_INCLUDES: usize = 20;

/// What a shell starts with.
#[derive(Debug, Clone)]
pub struct ShellOptions {
    /// How statements run.
    pub session: SessionOptions,
    /// How answers look.
    pub style: OutputStyle,
    /// Makes the one answer a file of this format.
    pub file_format: Option<FileFormat>,
    /// Says nothing but answers and errors.
    pub is_quiet: bool,
    /// The moment that the files are read at, in words.
    pub moment: String,
    /// Where answers go, if not to standard output.
    pub out: Option<Target>,
    /// Variables that are there from the start.
    pub variables: Vec<(String, String)>,
}

/// A shell.
pub struct Shell {
    cluster: Cluster,
    session: Arc<Session>,
    runtime: Handle,
    options: ShellOptions,
    style: OutputStyle,
    times: bool,
    stops_on_error: bool,
    target: Target,
    cutter: Cutter,
    variables: Variables,
    branches: Branches,
    /// What was typed before the lines that are left out.
    typed_before: Option<Typed>,
    names: Names,
    /// The statement that ran last.
    last: Option<String>,
    is_interactive: bool,
    /// How many files are being included.
    includes: usize,
    /// Ctrl-C was pressed: files that are being included end.
    was_cancelled: bool,
    has_failed: bool,
    /// A statement has written the file that has the rows of one.
    has_answered: bool,
    ends: bool,
    work: Work,
}

/// The error as the command tells it: what lies below is known there by its own type.
pub fn told(error: Error) -> anyhow::Error {
    match error {
        Error::Engine(error) => error.into(),
        Error::System(error) => error.into(),
        other => match other.report() {
            // The engine names settings of its own.
            known if known.state == SqlState::OUT_OF_MEMORY => known.into(),
            _ => other.into(),
        },
    }
}

fn refused(what: &str) -> Error {
    StatementError::unsupported(what).into()
}

/// The statements of a text of several, if one of them is COPY.
fn several_with_copy(text: &str) -> Option<Vec<String>> {
    let (mut cutter, mut found) = (Cutter::default(), Vec::new());
    for line in text.split('\n') {
        cutter.push(line);
        while let Some(piece) = cutter.next(&Variables::default()) {
            let Piece::Statement(statement) = piece else { return None };
            found.push(statement);
        }
    }
    found.push(cutter.take());
    found.retain(|statement| !statement.trim().is_empty());
    let has_copy = found.iter().any(|statement| after_copy(statement).is_some());
    (found.len() > 1 && has_copy).then_some(found)
}

/// A line on standard output. Should nobody read there any more, the next answer finds out.
fn print(line: impl std::fmt::Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

fn is_cancelled(error: &Error) -> bool {
    matches!(error, Error::Statement(error) if error.state == SqlState::QUERY_CANCELED)
}

impl Shell {
    /// A shell on a database.
    pub fn new(session: Session, runtime: Handle, options: ShellOptions) -> Self {
        let given = options.variables.clone();
        let mut shell = Self {
            cluster: session.catalog().database().cluster().clone(),
            session: Arc::new(session),
            runtime,
            style: options.style.clone(),
            times: false,
            stops_on_error: false,
            target: options.out.clone().unwrap_or(Target::Standard),
            options,
            cutter: Cutter::default(),
            variables: Variables::default(),
            branches: Branches::default(),
            typed_before: None,
            names: Names::default(),
            last: None,
            is_interactive: false,
            includes: 0,
            was_cancelled: false,
            has_failed: false,
            has_answered: false,
            ends: false,
            work: Work::default(),
        };
        shell.name_database();
        for (name, value) in given {
            shell.set_variable(&[name, value]);
        }
        shell
    }

    /// What was done.
    pub fn work(&self) -> Work {
        self.work
    }

    /// False where a file is to have the rows of one statement, and none was answered.
    pub fn has_its_answer(&self) -> bool {
        self.options.file_format.is_none() || self.has_answered
    }

    fn completion(&self) -> Completion {
        if self.has_failed { Completion::Incomplete } else { Completion::Done }
    }

    /// Reads lines from the terminal until its user has enough.
    ///
    /// # Errors
    /// When the terminal cannot be read, or answers cannot be written.
    pub fn interact(&mut self) -> Result<Completion> {
        self.is_interactive = true;
        self.names_are_others();
        let mut terminal = Terminal::new(self.names.clone(), io::stdout().is_terminal())?;
        pagemill_io::watch_interrupt_key()?;
        if !self.options.is_quiet {
            let program = env!("CARGO_PKG_VERSION");
            let version = self.cluster.version();
            print(format!(
                "pagemill sql {program} on the files of PostgreSQL {version}\nType \"help\" for help.\n"
            ));
        }
        self.read(&mut terminal)?;
        Ok(Completion::Done)
    }

    /// Answers the statements of a text, all of which have to be understood before the first one runs, unless COPY is among
    /// them; the first that fails is the last.
    ///
    /// # Errors
    /// When answers cannot be written.
    pub fn once(&mut self, text: &str) -> Result<Completion> {
        self.statement(text, &self.style.clone(), self.target.clone())?;
        Ok(self.completion())
    }

    /// Reads lines of a stream, as of a file with statements.
    ///
    /// # Errors
    /// When it cannot be read, or answers cannot be written.
    pub fn stream(&mut self, from: impl BufRead) -> Result<Completion> {
        self.read(&mut Stream(from))?;
        Ok(self.completion())
    }

    fn read(&mut self, lines: &mut dyn Lines) -> Result<()> {
        let mut typed = String::new();
        while !self.ends {
            self.names.behind(self.cutter.statement());
            self.style.terminal_columns = lines.columns();
            match lines.next(&self.prompt())? {
                Line::End => {
                    self.end_of_input()?;
                    break;
                }
                Line::Interrupted => {
                    typed.clear();
                    self.cutter.reset();
                }
                Line::Text(text) => {
                    if !typed.is_empty() {
                        typed.push('\n');
                    }
                    typed.push_str(&text);
                    self.was_cancelled = false;
                    self.lines(&text)?;
                    if self.cutter.statement().is_empty() {
                        lines.remember(&std::mem::take(&mut typed));
                    }
                }
            }
        }
        Ok(())
    }

    /// What stands behind the last semicolon of a stream is a statement, too; of a terminal it is forgotten.
    fn end_of_input(&mut self) -> Result<()> {
        if self.is_interactive && self.includes == 0 {
            print("\\q");
            return Ok(());
        }
        let rest = self.cutter.take();
        if !self.branches.is_empty() {
            let is_active = std::mem::take(&mut self.branches).is_active();
            self.typed_before = None;
            self.complain("the input ends without \\endif");
            if !is_active {
                return Ok(());
            }
        }
        self.statement(&rest, &self.style.clone(), self.target.clone())
    }

    fn prompt(&self) -> String {
        let name =
            String::from_utf8_lossy(&self.session.catalog().database().row().name).into_owned();
        format!("{name}{}> ", self.cutter.prompt())
    }

    fn lines(&mut self, text: &str) -> Result<()> {
        for line in text.split('\n') {
            if self.is_interactive && self.cutter.statement().is_empty() && self.is_plain_word(line)
            {
                continue;
            }
            self.cutter.push(line);
            while let Some(piece) = self.next_piece() {
                match piece {
                    Piece::Command { name, rest } if scripting::is_of_branches(&name) => {
                        self.branch(&name, &rest);
                    }
                    _ if !self.branches.is_active() => {}
                    Piece::Statement(text) => {
                        let text = if text.is_empty() { text } else { text + ";" };
                        self.statement(&text, &self.style.clone(), self.target.clone())?;
                    }
                    Piece::Command { name, rest } => self.command(&name, &rest)?,
                }
                if self.ends || self.was_cancelled {
                    self.cutter.reset();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// What comes next of the line. Of lines that are left out variables are not asked for.
    fn next_piece(&mut self) -> Option<Piece> {
        match self.branches.is_active() {
            true => self.cutter.next(&self.variables),
            false => self.cutter.next(&Variables::default()),
        }
    }

    /// The words that whoever knows no backslashes types.
    fn is_plain_word(&mut self, line: &str) -> bool {
        match line.trim().trim_end_matches(';').trim_end() {
            "quit" | "exit" => self.ends = true,
            "help" => {
                print(
                    "Type a SELECT statement and a semicolon, or:\n  \\d to list tables, \\d NAME to describe one\n  \\? for all \
                     backslash commands\n  \\q to quit",
                );
            }
            _ => return false,
        }
        true
    }

    /// Runs the statements of a text, which is one unless somebody wrote `\;`.
    fn statement(&mut self, text: &str, style: &OutputStyle, target: Target) -> Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        self.last = Some(text.to_owned());
        let start = Instant::now();
        if let Some(pieces) = several_with_copy(text) {
            return self.one_after_the_other(&pieces, style, target);
        }
        if let Some(rest) = after_copy(text) {
            if self.options.file_format.is_some() {
                return self.tell(refused("COPY where the answer is a Parquet or Arrow file"));
            }
            self.copy(rest, target)?;
            self.tell_time(start);
            return Ok(());
        }
        let parsed = match Session::parse(text) {
            Ok(parsed) => parsed,
            Err(error) => return self.tell(error),
        };
        for statement in parsed {
            let done = match self.options.file_format {
                None => self.run_to(statement, style, target.clone()),
                Some(format) => self.run_to_file(statement, format, target.clone()),
            };
            if let Err(error) = done.and_then(|answer| self.account(&answer)) {
                self.tell(error)?;
                break;
            }
            self.has_succeeded();
        }
        self.tell_time(start);
        Ok(())
    }

    /// Statements among which COPY is one, which the parser does not know: each by itself, until one fails.
    fn one_after_the_other(
        &mut self,
        pieces: &[String],
        style: &OutputStyle,
        target: Target,
    ) -> Result<()> {
        let failed_before = std::mem::take(&mut self.has_failed);
        for piece in pieces {
            self.statement(piece, style, target.clone())?;
            if self.has_failed {
                break;
            }
        }
        self.has_failed |= failed_before;
        Ok(())
    }

    fn run_to(&self, statement: Statement, style: &OutputStyle, target: Target) -> Result<Answer> {
        let (session, runtime, style) = (self.session.clone(), self.runtime.clone(), style.clone());
        interruptible(move |cancel| {
            let out = BufWriter::new(Gate { inner: target, cancel: cancel.clone() });
            let mut output = Output::with_style(style, out);
            let answer = runtime.block_on(session.run_with(&statement, &mut output, cancel));
            let mut out = output.into_inner();
            out.flush()?;
            answer
        })
    }

    /// The rows of a statement as a file, which has those of one.
    fn run_to_file(
        &mut self,
        statement: Statement,
        format: FileFormat,
        target: Target,
    ) -> Result<Answer> {
        if std::mem::replace(&mut self.has_answered, true) {
            return unsupported("a Parquet or Arrow file of several answers");
        }
        self.write_file(statement, format, target)
    }

    fn write_file(
        &self,
        statement: Statement,
        format: FileFormat,
        target: Target,
    ) -> Result<Answer> {
        let (session, runtime) = (self.session.clone(), self.runtime.clone());
        let options = ArrowOptions { format, ..ArrowOptions::default() };
        let memory = self.options.session.memory.as_ref().map(StatementMemory::bytes);
        interruptible(move |cancel| {
            let out = Gate { inner: target, cancel: cancel.clone() };
            let mut file = WholeFile::new(options, memory, out);
            runtime.block_on(session.run_with(&statement, &mut file, cancel))
        })
    }

    fn account(&mut self, answer: &Answer) -> Result<()> {
        self.variables.set("ROW_COUNT", answer.rows.to_string());
        self.work.rows += answer.rows;
        self.work.pages += answer.pages;
        answer.notices.iter().for_each(failure::say);
        for loss in &answer.losses {
            failure::complain(format!("skipped: {loss}"));
            self.has_failed = true;
        }
        Ok(())
    }

    fn tell_time(&self, start: Instant) {
        if self.times {
            let elapsed = start.elapsed().as_secs_f64() * 1000.0;
            print(format!("Time: {elapsed:.3} ms{}", commands::long_time(elapsed)));
        }
    }

    /// Says an error, after which the shell goes on.
    ///
    /// # Errors
    /// Itself, where nobody reads answers any more, and where the first one is to be the last.
    fn tell(&mut self, error: Error) -> Result<()> {
        self.has_failed = true;
        self.was_cancelled |= is_cancelled(&error);
        let (detail, hint) = match &error {
            Error::Statement(error) => (error.detail.clone(), error.hint.clone()),
            _ => (None, None),
        };
        self.has_failed_by(&error);
        let error = told(error);
        if failure::is_broken_pipe(&error) {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        }
        failure::complain(failure::text_of(&error));
        if let Some(detail) = detail {
            failure::complain(format!("detail: {detail}"));
        }
        if let Some(hint) = hint {
            failure::complain(format!("hint: {hint}"));
        }
        self.ends |= self.stops_on_error && !(self.is_interactive && self.includes == 0);
        Ok(())
    }

    /// Says what is wrong with a backslash command.
    fn complain(&mut self, message: impl std::fmt::Display) {
        self.has_failed = true;
        failure::complain(message);
        self.ends |= self.stops_on_error && !(self.is_interactive && self.includes == 0);
    }

    /// Says what a command changed.
    fn say(&self, message: impl std::fmt::Display) {
        if !self.options.is_quiet {
            print(message);
        }
    }

    fn names_are_others(&self) {
        let rows = self.cluster.databases().unwrap_or_default();
        let databases = rows.iter().map(|row| String::from_utf8_lossy(&row.name).into_owned());
        self.names.of(&self.session, databases.collect());
    }

    /// Statements of a file, as if they were typed.
    fn include(&mut self, path: &str) -> Result<()> {
        if self.includes >= MOST_INCLUDES {
            self.complain(format!(
                "{path}: files include each other more than {MOST_INCLUDES} times"
            ));
            return Ok(());
        }
        let bytes = match HostFiles::real().read_file(Path::new(path), MOST_BYTES) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.complain(format!("{path}: {error}"));
                return Ok(());
            }
        };
        let outer = (std::mem::take(&mut self.cutter), std::mem::take(&mut self.branches));
        self.includes += 1;
        let read = self.read_included(&mut Stream(&bytes[..]));
        self.includes -= 1;
        (self.cutter, self.branches) = outer;
        match read {
            Err(Error::System(error)) if error.kind() == io::ErrorKind::InvalidData => {
                self.complain(format!("{path}: {error}"));
                Ok(())
            }
            other => other,
        }
    }

    fn read_included(&mut self, lines: &mut dyn Lines) -> Result<()> {
        while !self.ends && !self.was_cancelled {
            match lines.next("")? {
                Line::End => return self.end_of_input(),
                Line::Interrupted => return Ok(()),
                Line::Text(text) => self.lines(&text)?,
            }
        }
        Ok(())
    }

    /// The style with columns below each other.
    fn expanded_style(&self) -> OutputStyle {
        OutputStyle { expanded: Expanded::On, ..self.style.clone() }
    }
}
