//! The search itself: item by item along a path, and into containers where an item yields several values.
//!
//! ```text
//! $ .a .b [*] ?(@ > 1)    $, .a and .b yield one value each: a loop. [*] yields several: each runs through the rest.
//! ```
//!
//! Where nothing is collected, a search ends with the first item that is found; then errors behind it are not met.
//!
//! Invariant: recursion is bounded by [`MAX_DEPTH`], whatever path and document.
//!
//! Source: `executeItemOptUnwrapTarget`, `executeNextItem`, `executeAnyItem` in
//! `src/backend/utils/adt/jsonpath_exec.c`, PostgreSQL 14 to 18.

use super::kind::{Kind, Operator, Word};
use super::numbers::whole;
use super::passed::PassedValue;
use super::path::{NodeId, Path};
use super::value::{Bytes, Value};
use super::walk::Walk;
use super::{Query, Settings, build};
use crate::error::{SqlState, StatementError};
use crate::functions::rows::Outcome;

/// Expressions in expressions, and items of several values behind each other: so many take about half of the stack of 2 MiB
/// that threads have, without optimization. A server has room for more.
pub(super) const MAX_DEPTH: usize = 150;

/// What came of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Found,
    Nothing,
    /// An error that is suppressed.
    Failed,
}

/// Where items are collected; none where it only matters whether there is one.
pub(super) type Found<'f, 'q> = Option<&'f mut Vec<Value<'q>>>;

/// What comes of one item.
pub(super) enum Step<'q> {
    Done(Status),
    /// A value for the item behind.
    Next(Value<'q>),
}

/// One search.
pub(super) struct Run<'q> {
    pub(super) path: &'q Path,
    pub(super) settings: &'q Settings<'q>,
    variables: Option<&'q [u8]>,
    passed: Option<&'q [PassedValue]>,
    /// `$`
    pub(super) root: Value<'q>,
    /// `@`
    pub(super) current: Value<'q>,
    /// Elements of the array whose subscripts are being computed, for `last`.
    pub(super) array_size: Option<usize>,
    /// The number of the next object that `.keyvalue()` makes.
    pub(super) next_object: i64,
    /// Whether what is not there, or of another type, is no error.
    pub(super) ignores_structure: bool,
    /// Whether errors that can be suppressed are not.
    pub(super) throws: bool,
    depth: usize,
}

impl<'q> Run<'q> {
    /// # Errors
    /// When the variables are no object.
    pub(super) fn new(query: &Query<'q>) -> Outcome<Self> {
        let root = Value::document(Bytes::Given(query.document), 0)?;
        if let Some(variables) = query.variables
            && Value::document(Bytes::Given(variables), 1)?.as_object().is_none()
        {
            let message = "\"vars\" argument is not an object";
            return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
        }
        Ok(Self {
            path: query.path,
            settings: query.settings,
            variables: query.variables,
            passed: query.passed,
            current: root.clone(),
            root,
            array_size: None,
            next_object: 1 + variables_count(query),
            ignores_structure: query.path.is_lax,
            throws: !query.is_silent,
            depth: 0,
        })
    }

    pub(super) fn is_lax(&self) -> bool {
        self.path.is_lax
    }

    /// An item applied to a value, which is taken apart in lax mode if it is an array and the item is for its elements.
    pub(super) fn item(
        &mut self,
        at: NodeId,
        value: Value<'q>,
        found: Found<'_, 'q>,
    ) -> Outcome<Status> {
        self.item_unwrapping(at, value, self.is_lax(), found)
    }

    /// Err ends the whole run, so that the depth need not be put right behind it.
    pub(super) fn item_unwrapping(
        &mut self,
        mut at: NodeId,
        mut value: Value<'q>,
        mut unwraps: bool,
        mut found: Found<'_, 'q>,
    ) -> Outcome<Status> {
        self.enter()?;
        let status = loop {
            match self.step(at, value, unwraps, found.as_deref_mut())? {
                Step::Done(status) => break status,
                Step::Next(next) => value = next,
            }
            match self.path.next(at) {
                Some(next) => (at, unwraps) = (next, self.is_lax()),
                None => break collect(value, found),
            }
        };
        self.leave();
        Ok(status)
    }

    /// # Errors
    /// When it is too deep.
    pub(super) fn enter(&mut self) -> Outcome<()> {
        if self.depth >= MAX_DEPTH {
            let message =
                format!("stack depth limit exceeded: more than {MAX_DEPTH} levels of a jsonpath");
            return Err(StatementError::new(SqlState("54001"), message));
        }
        self.depth += 1;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// What is behind an item, applied to a value that it yields.
    pub(super) fn behind(
        &mut self,
        at: NodeId,
        value: Value<'q>,
        found: Found<'_, 'q>,
    ) -> Outcome<Status> {
        match self.path.next(at) {
            Some(next) => self.item_unwrapping(next, value, self.is_lax(), found),
            None => Ok(collect(value, found)),
        }
    }

    fn step(
        &mut self,
        at: NodeId,
        value: Value<'q>,
        unwraps: bool,
        found: Found<'_, 'q>,
    ) -> Outcome<Step<'q>> {
        let path = self.path;
        let kind = path.kind(at)?;
        // Items that are applied to the elements of an array.
        if unwraps
            && kind.is_of_elements()
            && let Some(array) = value.as_array()
        {
            let walk = Walk { node: Some(at), ..Walk::CHILDREN };
            return self.walk(walk, array.clone(), found).map(Step::Done);
        }
        match kind {
            Kind::Word(word) => self.word(at, *word, value, found),
            Kind::Subscripts(subscripts) => self.subscripts(at, subscripts, &value, found),
            Kind::AnyLevels(first, last) => self.levels(at, (*first, *last), value, found),
            Kind::Filter(condition) => self.filter(*condition, value),
            Kind::Sign(is_minus, operand) => self.sign(at, (*is_minus, *operand), value, found),
            Kind::Method(method, arguments) => self.method(at, (*method, *arguments), value, found),
            Kind::Binary(operator, left, right) if !operator.is_predicate() => {
                self.arithmetic((*operator, *left, *right), value)
            }
            Kind::Binary(..)
            | Kind::Not(_)
            | Kind::IsUnknown(_)
            | Kind::Exists(_)
            | Kind::LikeRegex { .. } => self.predicate_item(at, &value),
            _ => self.leaf(kind, &value),
        }
    }

    /// An item that needs no others.
    fn leaf(&self, kind: &'q Kind, value: &Value<'q>) -> Outcome<Step<'q>> {
        let path = self.path;
        Ok(Step::Next(match kind {
            Kind::Bool(truth) => Value::Bool(*truth),
            Kind::Numeric(range) => Value::Number(Bytes::Given(path.bytes(range))),
            Kind::String(range) => Value::String(Bytes::Given(path.bytes(range))),
            Kind::Variable(range) => self.variable(path.bytes(range))?,
            Kind::Key(range) => return self.key(path.bytes(range), value),
            _ => Value::Null,
        }))
    }

    fn predicate_item(&mut self, at: NodeId, value: &Value<'q>) -> Outcome<Step<'q>> {
        let truth = self.truth(at, value)?;
        Ok(Step::Next(truth.map_or(Value::Null, Value::Bool)))
    }

    fn word(
        &mut self,
        at: NodeId,
        word: Word,
        value: Value<'q>,
        found: Found<'_, 'q>,
    ) -> Outcome<Step<'q>> {
        match word {
            Word::Current => Ok(Step::Next(self.current.clone())),
            Word::Root => Ok(Step::Next(self.root.clone())),
            Word::Last => match self.array_size {
                Some(size) => Ok(Step::Next(whole(size as i64 - 1)?)),
                None => Err(super::damaged("evaluating jsonpath LAST outside of array subscript")),
            },
            Word::AnyArray => self.any_array(at, value, found),
            Word::AnyKey => self.any_key(at, &value, found),
        }
    }

    /// The value of a variable. Without any variables at all some versions have none, some NULL.
    fn variable(&self, name: &[u8]) -> Outcome<Value<'q>> {
        if let Some(passed) = self.passed {
            let found = passed.iter().zip(1..).find(|(one, _)| one.name.as_bytes() == name);
            return found.map_or_else(|| Err(unknown(name)), |(one, id)| one.value.value(id));
        }
        if self.variables.is_none() && self.settings.major < 17 {
            return Err(StatementError::unsupported("a variable of a jsonpath in an operator"));
        }
        let found = match self.variables {
            Some(variables) => match Value::document(Bytes::Given(variables), 1)? {
                Value::Container(container) => container.member(name)?,
                _ => None,
            },
            None => None,
        };
        found.ok_or_else(|| unknown(name))
    }

    /// An error that can be suppressed.
    pub(super) fn fail(
        &self,
        state: &'static str,
        message: impl FnOnce() -> String,
    ) -> Outcome<Status> {
        if self.throws {
            return Err(StatementError::new(SqlState(state), message()));
        }
        Ok(Status::Failed)
    }

    /// The same where lax mode has none.
    pub(super) fn fail_structure(
        &self,
        state: &'static str,
        message: impl FnOnce() -> String,
    ) -> Outcome<Step<'q>> {
        if self.ignores_structure {
            return Ok(Step::Done(Status::Nothing));
        }
        self.fail(state, message).map(Step::Done)
    }

    /// The values of an operand; those of arrays among them in lax mode.
    pub(super) fn operand(
        &mut self,
        at: NodeId,
        value: &Value<'q>,
        unwraps: bool,
    ) -> Outcome<Option<Vec<Value<'q>>>> {
        let mut found = Vec::new();
        if self.item(at, value.clone(), Some(&mut found))? == Status::Failed {
            return Ok(None);
        }
        if !unwraps || !self.is_lax() || !found.iter().any(|value| value.as_array().is_some()) {
            return Ok(Some(found));
        }
        let mut elements = Vec::with_capacity(found.len());
        for value in found {
            match value.as_array() {
                Some(array) => {
                    for number in 0..array.count {
                        elements.extend(array.element(number)?);
                    }
                }
                None => elements.push(value),
            }
        }
        Ok(Some(elements))
    }

    /// A document that the path makes.
    pub(super) fn made_object(
        &mut self,
        key: Value<'q>,
        value: Value<'q>,
        id: Value<'q>,
    ) -> Outcome<Value<'q>> {
        let document = build::pair(key, value, id)?;
        let number = self.next_object;
        self.next_object += 1;
        Value::document(Bytes::made(document), number)
    }
}

/// Variables have numbers before those of the objects that a path makes.
fn variables_count(query: &Query<'_>) -> i64 {
    match query.passed {
        Some(passed) => passed.len() as i64,
        None => i64::from(query.variables.is_some()),
    }
}

#[cold]
fn unknown(name: &[u8]) -> StatementError {
    let name = String::from_utf8_lossy(name);
    let message = format!("could not find jsonpath variable \"{name}\"");
    StatementError::new(SqlState::UNDEFINED_OBJECT, message)
}

/// An item that is found.
pub(super) fn collect<'q>(value: Value<'q>, found: Found<'_, 'q>) -> Status {
    if let Some(found) = found {
        found.push(value);
    }
    Status::Found
}

impl Kind {
    /// Whether lax mode applies it to the elements of an array.
    fn is_of_elements(&self) -> bool {
        use super::kind::Method::{Size, Type};
        match self {
            Self::Word(Word::AnyKey) | Self::Key(_) | Self::Filter(_) => true,
            Self::Method(method, _) => !matches!(method, Type | Size),
            _ => false,
        }
    }
}

/// An operator with its operands.
pub(super) type Operation = (Operator, NodeId, NodeId);
