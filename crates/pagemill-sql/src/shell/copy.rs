//! `\copy … to`: an answer or a table into a file, which appears when it is whole.
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

fn output(error: pagemill_io::Error) -> Error {
    Error::Engine(pagemill_engine::Error::Output(error))
}

impl Shell {
    /// `\copy`.
    ///
    /// # Errors
    /// Where the shell cannot go on.
    pub(super) fn copy(&mut self, text: &str) -> Result<()> {
        match self.copied(text) {
            Ok(rows) => {
                if let Some(rows) = rows {
                    self.say(format!("COPY {rows}"));
                }
                Ok(())
            }
            Err(error) => self.tell(error),
        }
    }

    /// How many rows went to a file.
    fn copied(&self, text: &str) -> Result<Option<u64>> {
        let copy = parse(text)?;
        let statement = copy.statement(self.session.catalog())?;
        let Copy { file, form, .. } = copy;
        let target = match &file {
            Some(path) => Target::whole(Path::new(path)).map_err(output)?,
            None => self.target.clone(),
        };
        let answer = match form {
            Form::Rows(form) => self.write_rows(statement, form, target.clone())?,
            Form::File(format) => self.write_file(statement, format, target.clone())?,
        };
        target.finish().map_err(output)?;
        Ok(file.map(|_| answer.rows))
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
