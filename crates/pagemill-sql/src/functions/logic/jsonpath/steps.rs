//! Items that lead into containers: keys, subscripts, all elements, all levels, and filters.
//!
//! In lax mode what is no array counts as an array of itself, and what is not there is no error.
//!
//! Source: `executeItemOptUnwrapTarget`, `getArrayIndex`, `executeKeyValueMethod` in
//! `src/backend/utils/adt/jsonpath_exec.c`, PostgreSQL 14 to 18.

use super::numbers::{to_i32, whole};
use super::path::NodeId;
use super::run::{Found, Run, Status, Step};
use super::value::{Container, Value};
use super::walk::Walk;
use crate::functions::numeric::arithmetic::truncate;
use crate::functions::rows::Outcome;

const ARRAY_NOT_FOUND: &str = "22039";
const MEMBER_NOT_FOUND: &str = "2203A";
pub(super) const OBJECT_NOT_FOUND: &str = "2203C";
const INVALID_SUBSCRIPT: &str = "22033";

/// Numbers of objects are made of that of their document, by so much, and where they are in it.
const OBJECTS_OF_A_DOCUMENT: i64 = 10_000_000_000;

impl<'q> Run<'q> {
    pub(super) fn key(&self, key: &[u8], value: &Value<'q>) -> Outcome<Step<'q>> {
        let Some(object) = value.as_object() else {
            return self.fail_structure(MEMBER_NOT_FOUND, || {
                "jsonpath member accessor can only be applied to an object".to_owned()
            });
        };
        match object.member(key)? {
            Some(member) => Ok(Step::Next(member)),
            None => self.fail_structure(MEMBER_NOT_FOUND, || {
                format!("JSON object does not contain key \"{}\"", String::from_utf8_lossy(key))
            }),
        }
    }

    pub(super) fn any_array(
        &mut self,
        at: NodeId,
        value: Value<'q>,
        found: Found<'_, 'q>,
    ) -> Outcome<Step<'q>> {
        if let Some(array) = value.as_array() {
            let walk = Walk { node: self.path.next(at), unwraps: self.is_lax(), ..Walk::CHILDREN };
            return self.walk(walk, array.clone(), found).map(Step::Done);
        }
        if self.is_lax() {
            return Ok(Step::Next(value));
        }
        self.fail_structure(ARRAY_NOT_FOUND, || {
            "jsonpath wildcard array accessor can only be applied to an array".to_owned()
        })
    }

    pub(super) fn any_key(
        &mut self,
        at: NodeId,
        value: &Value<'q>,
        found: Found<'_, 'q>,
    ) -> Outcome<Step<'q>> {
        if let Some(object) = value.as_object() {
            let walk = Walk { node: self.path.next(at), unwraps: self.is_lax(), ..Walk::CHILDREN };
            return self.walk(walk, object.clone(), found).map(Step::Done);
        }
        self.fail_structure(OBJECT_NOT_FOUND, || {
            "jsonpath wildcard member accessor can only be applied to an object".to_owned()
        })
    }

    /// `**`, from a level to another.
    pub(super) fn levels(
        &mut self,
        at: NodeId,
        (first, last): (u32, u32),
        value: Value<'q>,
        mut found: Found<'_, 'q>,
    ) -> Outcome<Step<'q>> {
        let mut status = Status::Nothing;
        if first == 0 {
            let saved = self.ignores_structure;
            self.ignores_structure = true;
            status = self.behind(at, value.clone(), found.as_deref_mut())?;
            self.ignores_structure = saved;
            if status == Status::Found && found.is_none() {
                return Ok(Step::Done(status));
            }
        }
        // An error at the first level is forgotten for those below, as the server does.
        if let Value::Container(container) = value {
            let node = self.path.next(at);
            let walk = Walk { node, first, last, ignores_structure: true, unwraps: self.is_lax() };
            status = self.walk(walk, container, found)?;
        }
        Ok(Step::Done(status))
    }

    pub(super) fn filter(&mut self, condition: NodeId, value: Value<'q>) -> Outcome<Step<'q>> {
        let around = std::mem::replace(&mut self.current, value.clone());
        let truth = self.truth(condition, &value);
        self.current = around;
        Ok(match truth? {
            Some(true) => Step::Next(value),
            _ => Step::Done(Status::Nothing),
        })
    }

    pub(super) fn subscripts(
        &mut self,
        at: NodeId,
        subscripts: &[(NodeId, Option<NodeId>)],
        value: &Value<'q>,
        found: Found<'_, 'q>,
    ) -> Outcome<Step<'q>> {
        let array = value.as_array();
        if array.is_none() && !self.is_lax() {
            return self.fail_structure(ARRAY_NOT_FOUND, || {
                "jsonpath array accessor can only be applied to an array".to_owned()
            });
        }
        let around = self.array_size;
        let size = array.map_or(1, |array| array.count);
        self.array_size = Some(size);
        let (status, is_restored) = self.each_subscript((at, subscripts), value, size, found)?;
        if is_restored {
            self.array_size = around;
        }
        Ok(Step::Done(status))
    }

    /// Also whether the size of the array around is that again: two ways out of the server's loop leave it as it is.
    fn each_subscript(
        &mut self,
        (at, subscripts): (NodeId, &[(NodeId, Option<NodeId>)]),
        value: &Value<'q>,
        size: usize,
        mut found: Found<'_, 'q>,
    ) -> Outcome<(Status, bool)> {
        let mut status = Status::Nothing;
        for (from, to) in subscripts {
            let Some(first) = self.subscript(*from, value)? else {
                return Ok((Status::Failed, true));
            };
            let last = match to {
                Some(to) => match self.subscript(*to, value)? {
                    Some(last) => last,
                    None => return Ok((Status::Failed, true)),
                },
                None => first,
            };
            let is_outside = first < 0 || first > last || i64::from(last) >= size as i64;
            if is_outside && !self.ignores_structure {
                let failed = self.fail(INVALID_SUBSCRIPT, || {
                    "jsonpath array subscript is out of bounds".to_owned()
                })?;
                return Ok((failed, false));
            }
            let range = i64::from(first.max(0))..=i64::from(last).min(size as i64 - 1);
            if found.is_none() && self.path.next(at).is_none() && !range.is_empty() {
                return Ok((Status::Found, false));
            }
            status = self.each_of_range(at, value, range, found.as_deref_mut())?;
            if status == Status::Failed || (status == Status::Found && found.is_none()) {
                return Ok((status, true));
            }
        }
        Ok((status, true))
    }

    fn each_of_range(
        &mut self,
        at: NodeId,
        value: &Value<'q>,
        range: std::ops::RangeInclusive<i64>,
        mut found: Found<'_, 'q>,
    ) -> Outcome<Status> {
        let mut status = Status::Nothing;
        for number in range {
            let element = match value.as_array() {
                Some(array) => array.element(usize::try_from(number).unwrap_or(usize::MAX))?, // default: no such element
                None => Some(value.clone()),
            };
            let Some(element) = element else { continue };
            status = self.behind(at, element, found.as_deref_mut())?;
            if status == Status::Failed || (status == Status::Found && found.is_none()) {
                return Ok(status);
            }
        }
        Ok(status)
    }

    /// A subscript as a number, cut to a whole one; none where it fails.
    fn subscript(&mut self, at: NodeId, value: &Value<'q>) -> Outcome<Option<i32>> {
        let mut found = Vec::new();
        if self.item(at, value.clone(), Some(&mut found))? == Status::Failed {
            return Ok(None);
        }
        let number = match &found[..] {
            [only] => only.as_number()?,
            _ => None,
        };
        let Some(number) = number else {
            let message = "jsonpath array subscript is not a single numeric value";
            return self.fail(INVALID_SUBSCRIPT, || message.to_owned()).map(|_| None);
        };
        match to_i32(&truncate(&number, 0)) {
            Some(number) => Ok(Some(number)),
            None => {
                let message = "jsonpath array subscript is out of integer range";
                self.fail(INVALID_SUBSCRIPT, || message.to_owned()).map(|_| None)
            }
        }
    }

    /// `.keyvalue()`
    pub(super) fn key_value(
        &mut self,
        at: NodeId,
        object: &Container<'q>,
        mut found: Found<'_, 'q>,
    ) -> Outcome<Step<'q>> {
        if object.count > 0 && found.is_none() && self.path.next(at).is_none() {
            return Ok(Step::Done(Status::Found));
        }
        let id = whole(
            (object.at as i64).wrapping_add(object.base.wrapping_mul(OBJECTS_OF_A_DOCUMENT)),
        )?;
        let mut status = Status::Nothing;
        for number in 0..object.count {
            let Some(value) = object.element(number)? else { continue };
            let made = self.made_object(object.key(number)?, value, id.clone())?;
            status = self.behind(at, made, found.as_deref_mut())?;
            if status == Status::Failed || (status == Status::Found && found.is_none()) {
                break;
            }
        }
        Ok(Step::Done(status))
    }
}
