//! Where a shell's lines come from: the terminal, with editing and history, or a stream.
//!
//! Invariant: a history that cannot be read or kept ends nothing.

use std::io::BufRead;
use std::path::PathBuf;

use pagemill_io::HostFiles;
use rustyline::config::Configurer as _;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Behavior, ColorMode, CompletionType, Config, Editor};

use super::completion::Names;
use crate::error::Result;

/// How many statements the history keeps.
const HISTORY: usize = 5000;

/// What came.
#[derive(Debug)]
pub(super) enum Line {
    /// A line, without its end; a statement from the history may have several.
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// The end.
    End,
}

/// A source of lines.
pub(super) trait Lines {
    /// The next one.
    ///
    /// # Errors
    /// When it cannot be read, or is not in UTF-8.
    fn next(&mut self, prompt: &str) -> Result<Line>;

    /// A statement was completed, for the history.
    fn remember(&mut self, _statement: &str) {}

    /// How wide the terminal is.
    fn columns(&mut self) -> Option<usize> {
        std::env::var("COLUMNS").ok()?.parse().ok()
    }
}

/// Lines of a stream, without prompts.
pub(super) struct Stream<R>(pub(super) R);

impl<R: BufRead> Lines for Stream<R> {
    fn next(&mut self, _: &str) -> Result<Line> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Ok(Line::End);
        }
        if line.ends_with('\n') {
            line.pop();
            if line.ends_with('\r') {
                line.pop();
            }
        }
        Ok(Line::Text(line))
    }
}

/// Lines typed at a terminal.
pub(super) struct Terminal {
    editor: Editor<Names, FileHistory>,
    history: Option<PathBuf>,
}

impl Terminal {
    pub(super) fn new(names: Names, on_terminal: bool) -> Result<Self> {
        let mut config = Config::builder()
            .completion_type(CompletionType::List)
            .completion_prompt_limit(200)
            .color_mode(ColorMode::Disabled)
            .history_ignore_space(true)
            .bracketed_paste(true)
            .auto_add_history(false);
        config.set_max_history_size(HISTORY).map_err(failed)?;
        if !on_terminal {
            // Answers go elsewhere, and what is typed is still seen.
            config = config.behavior(Behavior::PreferTerm);
        }
        let mut editor = Editor::with_config(config.build()).map_err(failed)?;
        editor.set_helper(Some(names));
        let history = history_file();
        if let Some(file) = &history {
            // There is none at first.
            let _ = editor.load_history(file);
        }
        Ok(Self { editor, history })
    }
}

impl Lines for Terminal {
    fn next(&mut self, prompt: &str) -> Result<Line> {
        match self.editor.readline(prompt) {
            Ok(line) => Ok(Line::Text(line)),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Ok(Line::Interrupted),
            Err(error) => Err(failed(error)),
        }
    }

    fn remember(&mut self, statement: &str) {
        let Ok(true) = self.editor.add_history_entry(statement) else { return };
        if let Some(file) = &self.history {
            let made =
                file.parent().is_some_and(|dir| HostFiles::real().create_dir_all(dir).is_ok());
            // A history that cannot be kept is no reason to stop.
            let _ = made.then(|| self.editor.append_history(file));
        }
    }

    fn columns(&mut self) -> Option<usize> {
        self.editor.dimensions().map(|(columns, _)| usize::from(columns))
    }
}

fn failed(error: ReadlineError) -> crate::Error {
    match error {
        ReadlineError::Io(error) => error.into(),
        other => std::io::Error::other(other).into(),
    }
}

/// `pagemill/sql_history` in the folder for what programs keep, as the XDG Base Directory Specification has it.
fn history_file() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let state =
        absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("pagemill").join("sql_history"))
}
