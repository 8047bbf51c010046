//! `pagemill inspect`: the control file, a relation, or one block.
//!
//! The control file is shown whatever state it tells of; the rest opens the directory as every
//! command does. Damage is printed beside what is damaged, and decides the exit status.

use anyhow::Result;
use pagemill_engine::inspect::control_file;
use pagemill_engine::select::find_one;
use pagemill_format::{BlockNumber, Fork};
use serde_json::{Map, Value};

use crate::arguments::{ForkChoice, InspectArguments};
use crate::failure::Completion;
use crate::inspect_block::{json_view, text_view};
use crate::inspect_relation;
use crate::session::Session;
use crate::session::stats::Work;

pub(crate) fn run(arguments: &InspectArguments) -> Result<Completion> {
    let session = Session::new(&arguments.common)?.recovered(&arguments.recovery)?;
    let view = match &arguments.table {
        None => control_view(&session, arguments.json)?,
        Some(table) => table_view(&session, table, arguments)?,
    };
    session.print(&view.text)?;
    session.finish(&Work::default());
    Ok(if view.is_damaged { Completion::Incomplete } else { Completion::Done })
}

/// What is printed, and whether it tells of damage.
pub(crate) struct View {
    pub(crate) text: String,
    pub(crate) is_damaged: bool,
}

impl View {
    pub(crate) fn json(value: &Value, is_damaged: bool) -> Self {
        Self { text: format!("{value:#}\n"), is_damaged }
    }
}

fn control_view(session: &Session<'_>, json: bool) -> Result<View> {
    let control = control_file(session.storage(), session.directory()?)?;
    if !json {
        return Ok(View { text: control.to_text(), is_damaged: false });
    }
    let fields = control.fields().into_iter();
    let object: Map<String, Value> =
        fields.map(|(label, value)| (label.to_owned(), Value::String(value))).collect();
    Ok(View::json(&Value::Object(object), false))
}

fn table_view(session: &Session<'_>, table: &str, arguments: &InspectArguments) -> Result<View> {
    let database = session.database(&arguments.database.dbname)?;
    let selected = find_one(&database, table)?;
    let relation = database.relation(&selected.class)?;
    match arguments.block {
        None => inspect_relation::view(&database, &relation, arguments.json),
        Some(number) => {
            let view = if arguments.json { json_view } else { text_view };
            view(&database, &relation, fork_of(arguments.fork), BlockNumber(number))
        }
    }
}

/// The fork that a flag names.
pub(crate) fn fork_of(choice: ForkChoice) -> Fork {
    match choice {
        ForkChoice::Main => Fork::Main,
        ForkChoice::Fsm => Fork::Fsm,
        ForkChoice::Vm => Fork::Vm,
        ForkChoice::Init => Fork::Init,
    }
}
