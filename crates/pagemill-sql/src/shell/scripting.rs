//! What makes scripts of statements: variables, answers that become variables, and parts that are done on a condition.
//!
//! Invariant: of a part that is left out neither statements nor conditions are looked at.
//!
//! Source: `src/bin/psql/command.c` and `SetResultVariables` in `common.c`, PostgreSQL 15.

use super::commands::boolean;
use super::cut::arguments;
use super::describe::Asking;
use super::running::interruptible;
use super::variables::is_name;
use super::{Shell, print};
use crate::error::{Error, Result};
use crate::output::Table;

/// The commands that say which lines are done.
pub(super) fn is_of_branches(name: &str) -> bool {
    matches!(name, "if" | "elif" | "else" | "endif")
}

/// Variables that psql looks at and nobody does here, each with the one value that asks for nothing.
const WITHOUT_EFFECT: [(&str, &str); 4] =
    [("ECHO", "none"), ("ECHO_HIDDEN", "off"), ("SINGLELINE", "off"), ("SINGLESTEP", "off")];

impl Shell {
    /// `\if` and its kin.
    pub(super) fn branch(&mut self, name: &str, rest: &str) {
        let was_active = self.branches.is_active();
        let done = match name {
            "if" => {
                let holds = was_active && self.holds(name, rest);
                self.branches.begin(holds);
                Ok(())
            }
            "elif" => {
                let holds = self.branches.asks_again() && self.holds(name, rest);
                self.branches.other(holds)
            }
            "else" => self.branches.last(),
            _ => self.branches.end(),
        };
        match (was_active, self.branches.is_active()) {
            (true, false) => self.typed_before = Some(self.cutter.typed()),
            (false, true) => {
                if let Some(typed) = self.typed_before.take() {
                    self.cutter.go_back(typed);
                }
            }
            _ => {}
        }
        if let Err(message) = done {
            self.complain(message);
        }
    }

    /// Whether a condition holds; one that is none does not.
    fn holds(&mut self, name: &str, rest: &str) -> bool {
        let words = match arguments(rest, &self.variables) {
            Ok(words) => words.join(" "),
            Err(message) => {
                self.complain(format!("\\{name}: {message}"));
                return false;
            }
        };
        boolean(&words).unwrap_or_else(|| {
            self.complain(format!("\\{name}: \"{words}\" is neither true nor false"));
            false
        })
    }

    /// `\set`: a name is given a value, or all are shown.
    pub(super) fn set_variable(&mut self, words: &[String]) {
        let [name, values @ ..] = words else {
            for (name, value) in self.variables.all() {
                print(format!("{name} = '{value}'"));
            }
            return;
        };
        let value = values.concat();
        if name == "ON_ERROR_STOP" {
            match if values.is_empty() { Some(true) } else { boolean(&value) } {
                Some(stops) => self.stops_on_error = stops,
                None => return self.complain("\\set ON_ERROR_STOP: on or off is expected"),
            }
        }
        let refused = WITHOUT_EFFECT.iter().find(|(of, may)| of == name && *may != value);
        if refused.is_some() {
            return self.complain(format!("\\set {name}: {value} is not supported here"));
        }
        match is_name(name) {
            true => self.variables.set(name, value),
            false => self.complain(format!("\\set: a variable cannot be called \"{name}\"")),
        }
    }

    /// Says in a variable which database is read.
    pub(super) fn name_database(&mut self) {
        let name = self.session.catalog().database().row().name.clone();
        self.variables.set("DBNAME", String::from_utf8_lossy(&name).into_owned());
    }

    /// `\unset`.
    pub(super) fn unset_variable(&mut self, words: &[String]) {
        match words {
            [] => self.complain("\\unset: missing required argument"),
            [name, ..] => {
                self.stops_on_error &= name != "ON_ERROR_STOP";
                self.variables.unset(name);
            }
        }
    }

    /// `\gset`: the one row of a statement becomes variables.
    ///
    /// # Errors
    /// Where the shell cannot go on.
    pub(super) fn answer_to_variables(&mut self, prefix: &str) -> Result<()> {
        let typed = self.cutter.take();
        let text = if typed.is_empty() { self.last.clone() } else { Some(typed) };
        let Some(text) = text else { return Ok(()) };
        self.last = Some(text.clone());
        let (session, runtime) = (self.session.clone(), self.runtime.clone());
        let answer = interruptible(move |cancel| {
            Asking { session: &session, runtime: &runtime, cancel }.answers(&text)
        });
        let accounted = answer.and_then(|(table, answers)| {
            answers.iter().try_for_each(|answer| self.account(answer))?;
            Ok(table)
        });
        match accounted {
            Ok(table) => self.row_to_variables(prefix, &table),
            Err(error) => self.tell(error)?,
        }
        Ok(())
    }

    fn row_to_variables(&mut self, prefix: &str, table: &Table) {
        let [row] = &table.rows[..] else {
            let count = if table.rows.is_empty() { "no rows" } else { "more than one row" };
            return self.complain(format!("\\gset: {count}, where one is expected"));
        };
        for (column, value) in table.names.iter().zip(row) {
            let name = format!("{prefix}{column}");
            match value {
                _ if !is_name(&name) => {
                    self.complain(format!("\\gset: a variable cannot be called \"{name}\""));
                }
                Some(value) => self.variables.set(&name, value.clone()),
                None => self.variables.unset(&name),
            }
        }
        self.has_succeeded();
    }

    /// Says in variables that a statement was answered.
    pub(super) fn has_succeeded(&mut self) {
        self.variables.set("ERROR", "false".to_owned());
        self.variables.set("SQLSTATE", "00000".to_owned());
    }

    /// Says in variables what a statement failed by.
    pub(super) fn has_failed_by(&mut self, error: &Error) {
        let report = error.report();
        let state = report.state.0.to_owned();
        self.variables.set("ERROR", "true".to_owned());
        self.variables.set("SQLSTATE", state.clone());
        self.variables.set("ROW_COUNT", "0".to_owned());
        self.variables.set("LAST_ERROR_SQLSTATE", state);
        self.variables.set("LAST_ERROR_MESSAGE", report.message);
    }
}
