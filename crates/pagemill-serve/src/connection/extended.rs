//! Statements that are prepared, bound to values and executed, by messages of their own.
//!
//! ```text
//! Parse ──► Statement { types, columns } ── Bind ──► Bound { values, formats } ── Execute ──► rows, up to as many as are wanted
//! ```
//!
//! Invariant: after an error, everything up to the next `Sync` is left out.
//!
//! Source: `exec_parse_message` and what follows it in `src/backend/tcop/postgres.c`, PostgreSQL 18.

mod cursors;
mod execution;

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_engine::Progress;
use pagemill_format::Oid;
use pagemill_sql::parameters::ParameterValue;
use pagemill_sql::session::{Answer, AnswerColumn, Prepared};
use pagemill_sql::statement_texts::StatementText;
use pagemill_sql::{SqlState, StatementError};

use self::cursors::Cursor;
use super::Connection;
use super::portal::Portal;
use crate::activity::shown;
use crate::command::{Command, commands};
use crate::error::{Error, Result};
use crate::protocol::{Bind, Described, FrontendMessage, Parse, TransactionStatus};
use crate::running::{Chunk, Formats};
use crate::served_cluster::check_unchanged;

/// What a client keeps between messages.
#[derive(Default)]
pub(super) struct Extended {
    statements: HashMap<String, Arc<Statement>>,
    portals: HashMap<String, Bound>,
    /// An error was told, and its run of messages is not over.
    pub(super) is_skipping: bool,
}

/// A prepared statement.
struct Statement {
    /// `None` for a text in which nothing stands.
    command: Option<Command>,
    prepared: Prepared,
    /// Its text, as it is shown to who looks at the server.
    text: Arc<str>,
}

/// A statement with its values.
struct Bound {
    statement: Arc<Statement>,
    values: Vec<ParameterValue>,
    formats: Formats,
    state: State,
    /// Of one that was made by `DECLARE`.
    cursor: Option<Cursor>,
}

impl Bound {
    /// What runs, with its values. They are taken: a portal begins once.
    fn executed(&mut self, statement: Arc<StatementText>) -> Executed {
        let prepared = Some(self.statement.prepared.clone());
        Executed { statement, prepared, values: std::mem::take(&mut self.values) }
    }
}

/// How far a portal is.
enum State {
    Ready,
    Running(Box<Begun>),
    Done,
}

/// A portal that has given rows, or will.
struct Begun {
    portal: Portal,
    /// Rows that came and were not sent: so many of the chunk were.
    left: Option<(Chunk, usize)>,
    /// What the statement came to, once no more rows come.
    answer: Option<Answer>,
}

/// What runs when a statement is executed.
pub(super) struct Executed {
    pub(super) statement: Arc<StatementText>,
    /// Of one that was prepared.
    pub(super) prepared: Option<Prepared>,
    pub(super) values: Vec<ParameterValue>,
}

impl Executed {
    /// One that was sent as a text.
    pub(super) fn of_text(statement: Arc<StatementText>) -> Self {
        Self { statement, prepared: None, values: Vec::new() }
    }
}

type Told<T> = Result<T, StatementError>;

impl Extended {
    /// Forgets a prepared statement.
    pub(super) fn forget(&mut self, name: &str) -> Told<()> {
        match self.statements.remove(name) {
            Some(_) => Ok(()),
            None => Err(unknown_statement(name)),
        }
    }

    /// The end of a transaction, and of all that was opened in it but cursors that are held.
    pub(super) fn end_portals(&mut self, is_commit: bool) {
        let stays = |bound: &mut Bound| {
            bound.cursor.as_mut().is_some_and(|cursor| cursor.outlives(is_commit))
        };
        self.portals.retain(|_, bound| stays(bound));
    }

    /// Closes all.
    pub(super) fn close_portals(&mut self) {
        self.portals.clear();
    }

    /// Forgets all.
    pub(super) fn forget_all(&mut self) {
        self.statements.clear();
    }
}

fn unknown_statement(name: &str) -> StatementError {
    let message = match name {
        "" => "unnamed prepared statement does not exist".to_owned(),
        name => format!("prepared statement \"{name}\" does not exist"),
    };
    StatementError::new(SqlState("26000"), message)
}

fn unknown_portal(name: &str) -> StatementError {
    StatementError::new(SqlState("34000"), format!("portal \"{name}\" does not exist"))
}

impl Connection {
    /// The end of a run of messages, and of its transaction where none was begun in words.
    pub(super) fn synchronize(&mut self) {
        let has_failed = std::mem::take(&mut self.extended.is_skipping);
        if self.status == TransactionStatus::Idle {
            self.extended.end_portals(!has_failed);
        }
        self.out.ready(self.status);
    }

    /// One message of a run.
    pub(super) async fn extended(&mut self, message: FrontendMessage) -> Result<()> {
        if self.extended.is_skipping {
            return Ok(());
        }
        let done = match message {
            FrontendMessage::Parse(parse) => self.parse(parse).await?,
            FrontendMessage::Bind(bind) => self.bind(bind),
            FrontendMessage::Describe(described) => self.describe_named(&described),
            FrontendMessage::Execute(execute) => self.execute(&execute).await?,
            FrontendMessage::Close(described) => {
                self.close(&described);
                Ok(())
            }
            _ => return Err(Error::protocol("unexpected message")),
        };
        if let Err(error) = done {
            self.fail(&error);
            self.extended.is_skipping = true;
        }
        Ok(())
    }

    async fn parse(&mut self, Parse { name, text, types }: Parse) -> Result<Told<()>> {
        let mut all = match commands(&text, &self.server.texts) {
            Ok(all) => all,
            Err(error) => return Ok(Err(error)),
        };
        if all.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Ok(Err(StatementError::new(SqlState::SYNTAX_ERROR, message)));
        }
        let types = types.into_iter().map(Oid).collect();
        let only = all.pop();
        let place = only.as_ref().map(|sent| sent.place(&text));
        let command = only.map(|sent| sent.command);
        let kept = self.keep(name, command, shown(&text), types).await?;
        let kept = match place {
            Some(place) => kept.map_err(place),
            None => kept,
        };
        Ok(kept.map(|()| self.out.empty(b'1')))
    }

    /// Prepares a statement and keeps it.
    async fn keep(
        &mut self,
        name: String,
        command: Option<Command>,
        text: Arc<str>,
        types: Vec<Oid>,
    ) -> Result<Told<()>> {
        self.works_on(&text);
        if !name.is_empty() && self.extended.statements.contains_key(&name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Ok(Err(StatementError::new(SqlState("42P05"), message)));
        }
        Ok(self.prepared(command.as_ref(), types).await?.map(|prepared| {
            self.extended.statements.insert(name, Arc::new(Statement { command, prepared, text }));
        }))
    }

    /// `PREPARE`.
    pub(super) async fn prepare(
        &mut self,
        name: String,
        types: &[String],
        query: Arc<StatementText>,
    ) -> Result<Told<()>> {
        let types = types.iter().map(|name| self.type_named(name));
        let types = match types.collect::<Told<Vec<Oid>>>() {
            Ok(types) => types,
            Err(error) => return Ok(Err(error)),
        };
        let text = shown(&query.to_string());
        let kept = self.keep(name, Some(Command::Query(query)), text, types).await?;
        Ok(kept.map(|()| self.out.complete("PREPARE")))
    }

    fn type_named(&self, name: &str) -> Told<Oid> {
        let found = self.session().type_named(name).map_err(|error| error.report())?;
        found.ok_or_else(|| {
            let message = format!("type \"{name}\" does not exist");
            StatementError::new(SqlState::UNDEFINED_OBJECT, message)
        })
    }

    /// What `EXECUTE` runs, and with which values.
    pub(super) fn executed(&self, name: &str, values: Vec<Option<String>>) -> Told<Executed> {
        let statement = self.extended.statements.get(name);
        let statement = statement.ok_or_else(|| unknown_statement(name))?;
        let Some(Command::Query(query)) = &statement.command else {
            return Err(StatementError::unsupported("EXECUTE of what is no query"));
        };
        let types = &statement.prepared.types;
        if types.len() != values.len() {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            return Err(StatementError::new(SqlState::SYNTAX_ERROR, message));
        }
        let value = |(value, type_oid): (Option<String>, &Oid)| ParameterValue {
            type_oid: *type_oid,
            is_binary: false,
            value: value.map(String::into_bytes),
        };
        Ok(Executed {
            statement: query.clone(),
            prepared: Some(statement.prepared.clone()),
            values: values.into_iter().zip(types.iter()).map(value).collect(),
        })
    }

    /// What is known of a command before it runs.
    async fn prepared(
        &mut self,
        command: Option<&Command>,
        types: Vec<Oid>,
    ) -> Result<Told<Prepared>> {
        if let Some(Err(error)) = command.map(|command| self.admit(command)) {
            return Ok(Err(error));
        }
        let nothing = |columns: Arc<[AnswerColumn]>| Ok(Prepared::of_columns(columns));
        let statement = match command {
            Some(Command::Query(statement)) => statement.clone(),
            Some(command @ (Command::Show(_) | Command::ShowAll)) => {
                let columns = self.setting_columns(command).await;
                return Ok(columns.and_then(|columns| nothing(columns.into())));
            }
            Some(command @ Command::SetConfig(call)) => {
                let columns = self.setting_columns(command).await;
                return Ok(columns.and_then(|columns| {
                    Ok(Prepared::of_columns(columns).with_types(call.types(&types)?))
                }));
            }
            Some(Command::Execute { name, .. }) => {
                let columns = self.extended.statements.get(name);
                let columns = columns.map(|named| named.prepared.columns.clone());
                return Ok(columns.ok_or_else(|| unknown_statement(name)).and_then(nothing));
            }
            Some(Command::Fetch(fetch)) if !fetch.is_move => {
                return Ok(self
                    .cursor(&fetch.name)
                    .and_then(|bound| nothing(bound.statement.prepared.columns.clone())));
            }
            Some(Command::Declare { query, .. }) => {
                // It takes values for its query, whose rows come with FETCH.
                let query = Command::Query(query.clone());
                let prepared = Box::pin(self.prepared(Some(&query), types)).await?;
                return Ok(
                    prepared.map(|query| Prepared::of_columns(Vec::new()).with_types(query.types))
                );
            }
            _ => return Ok(nothing(Arc::default())),
        };
        if let Err(error) = self.follow_settings().await {
            return Ok(Err(error));
        }
        let session = self.session().clone();
        if let Some(known) = session.prepared_before(&statement, &types) {
            return Ok(Ok(known));
        }
        // On a thread of its own: those that compute may all be busy with others' statements.
        let preparing = self.server.compute.spawn_blocking(move || {
            let prepared = session.prepare(&statement, &types).map_err(|error| error.report());
            // What is said of it may be of files that are not those that were opened.
            check_unchanged(&session)?;
            prepared
        });
        let cancel = Progress::default();
        self.registration.interrupt.begin(&cancel);
        let deadline = self.deadline();
        let prepared = self.unless_ended(preparing, &cancel, deadline).await;
        self.registration.interrupt.end();
        Ok(prepared?.and_then(|joined| joined.unwrap_or_else(|_| Err(super::defect()))))
    }

    fn bind(&mut self, bind: Bind) -> Told<()> {
        let Bind { portal, statement: name, formats, values, result_formats } = bind;
        let statement = self.extended.statements.get(&name);
        let statement = statement.ok_or_else(|| unknown_statement(&name))?.clone();
        if let Some(command) = &statement.command {
            self.admit(command)?;
        }
        let Prepared { types, columns, .. } = &statement.prepared;
        let violation =
            |message| Err(StatementError::new(crate::error::PROTOCOL_VIOLATION, message));
        if values.len() != types.len() {
            return violation(format!(
                "bind message supplies {} parameters, but prepared statement \"{name}\" requires {}",
                values.len(),
                types.len()
            ));
        }
        let (given, wanted) = (Formats(formats), Formats(result_formats));
        if !given.fit(values.len()) || !wanted.fit(columns.len()) {
            return violation("bind message has formats for another number of values".to_owned());
        }
        if !portal.is_empty() && self.extended.portals.contains_key(&portal) {
            let message = format!("cursor \"{portal}\" already exists");
            return Err(StatementError::new(SqlState("42P03"), message));
        }
        let value = |(number, (value, type_oid))| ParameterValue {
            type_oid,
            is_binary: given.is_binary(number),
            value,
        };
        let values = values.into_iter().zip(types.iter().copied()).enumerate().map(value).collect();
        let bound = Bound { statement, values, formats: wanted, state: State::Ready, cursor: None };
        self.extended.portals.insert(portal, bound);
        self.out.empty(b'2');
        Ok(())
    }

    fn describe_named(&mut self, described: &Described) -> Told<()> {
        let (prepared, formats) = match described {
            Described::Statement(name) => {
                let statement = self.extended.statements.get(name);
                let statement = statement.ok_or_else(|| unknown_statement(name))?;
                let prepared = statement.prepared.clone();
                self.out.parameter_description(prepared.types.iter().copied());
                (prepared, Formats::default())
            }
            Described::Portal(name) => {
                let portal = self.extended.portals.get(name);
                let portal = portal.ok_or_else(|| unknown_portal(name))?;
                (portal.statement.prepared.clone(), portal.formats.clone())
            }
        };
        match prepared.columns.is_empty() && !self.gives_rows(described) {
            true => self.out.empty(b'n'),
            false => self.describe(&prepared.columns, &formats),
        }
        Ok(())
    }

    /// True for a query, also one without columns.
    fn gives_rows(&self, described: &Described) -> bool {
        let statement = match described {
            Described::Statement(name) => self.extended.statements.get(name),
            Described::Portal(name) => {
                self.extended.portals.get(name).map(|bound| &bound.statement)
            }
        };
        let command = statement.and_then(|statement| statement.command.as_ref());
        matches!(command, Some(Command::Query(_) | Command::Execute { .. }))
            || matches!(command, Some(Command::Fetch(fetch)) if !fetch.is_move)
    }

    fn close(&mut self, described: &Described) {
        match described {
            Described::Statement(name) => drop(self.extended.statements.remove(name)),
            Described::Portal(name) => drop(self.extended.portals.remove(name)),
        }
        self.out.empty(b'3');
    }
}
