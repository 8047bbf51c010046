//! `\copy … to`, and `COPY … TO` as a statement: an answer or a table into a file, which appears when it is whole, or to where
//! answers go.
//!
//! What is copied and how is read as `COPY` has it ([`crate::copy`]).

use std::io::{BufWriter, Write as _};
use std::path::Path;

use sqlparser::ast::Statement;

use super::Shell;
use super::running::{Gate, interruptible};
use super::target::Target;
use crate::copy::{Copy, Form, parse};
use crate::error::{Error, Result};
use crate::output::{Copied, CopyForm};
use crate::session::Answer;

/// What was copied.
struct CopiedRows {
    answer: Answer,
    to_file: bool,
}

fn output(error: pagemill_io::Error) -> Error {
    Error::Engine(pagemill_engine::Error::Output(error))
}

impl Shell {
    /// What follows the command's name; `target` is where answers go.
    ///
    /// # Errors
    /// Where the shell cannot go on.
    pub(super) fn copy(&mut self, text: &str, target: Target) -> Result<()> {
        let copied = self.copied(text, target);
        match copied.and_then(|copied| self.account(&copied.answer).map(|()| copied)) {
            Ok(CopiedRows { answer, to_file: true }) => self.say(format!("COPY {}", answer.rows)),
            Ok(_) => {}
            Err(error) => self.tell(error)?,
        }
        Ok(())
    }

    fn copied(&self, text: &str, target: Target) -> Result<CopiedRows> {
        let copy = parse(text)?;
        let statement = copy.statement(self.session.catalog())?;
        let Copy { file, form, .. } = copy;
        let target = match &file {
            Some(path) => Target::whole(Path::new(path)).map_err(output)?,
            None => target,
        };
        let answer = match form {
            Form::Rows(form) => self.write_rows(statement, form, target.clone())?,
            Form::File(format) => self.write_file(statement, format, target.clone())?,
        };
        // Where answers go, others may follow.
        if file.is_some() {
            target.finish().map_err(output)?;
        }
        Ok(CopiedRows { answer, to_file: file.is_some() })
    }

    fn write_rows(&self, statement: Statement, form: CopyForm, to: Target) -> Result<Answer> {
        let (session, runtime) = (self.session.clone(), self.runtime.clone());
        interruptible(move |cancel| {
            let out = BufWriter::new(Gate { inner: to, cancel: cancel.clone() });
            let mut output = Copied::new(form, out);
            let answer = runtime.block_on(session.run_with(&statement, &mut output, cancel));
            output.into_inner().flush()?;
            answer
        })
    }
}
