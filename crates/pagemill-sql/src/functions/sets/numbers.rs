//! `generate_series` over integers and numerics.
//!
//! Source: `generate_series_step_int4` in `src/backend/utils/adt/int.c`, `generate_series_step_int8` in `int8.c`,
//! `generate_series_step_numeric` in `numeric.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{Int32Type, Int64Type};
use pagemill_types::builtin::oid;

use super::super::keys::payloads;
use super::super::numeric::arithmetic::{add, sign, subtract};
use super::super::numeric::as_payload;
use super::super::numeric::value::{Number, Value};
use super::super::rows::Outcome;
use super::{Asked, Cells, Series, SetCall, parameter};

/// Numerics come as payloads.
pub(super) fn prepare(asked: &mut Asked<'_>) {
    if !asked.key.starts_with("generate_series") {
        return;
    }
    for argument in asked.arguments.iter_mut().filter(|typed| typed.ty.oid == oid::NUMERIC) {
        *argument = as_payload(asked.catalog, argument);
        argument.ty.modifier = -1;
    }
}

/// Ends where the next number is no integer of its type.
struct Integers {
    next: Option<i64>,
    finish: i64,
    step: i64,
    least: i64,
    most: i64,
}

impl Integers {
    fn step(&mut self) -> Option<i64> {
        let current = self.next?;
        let is_in = if self.step > 0 { current <= self.finish } else { current >= self.finish };
        let next = current.checked_add(self.step);
        self.next = next.filter(|next| is_in && (self.least..=self.most).contains(next));
        is_in.then_some(current)
    }
}

struct Series4(Integers);

impl Series for Series4 {
    fn next(&mut self, out: &mut [Cells]) -> Outcome<bool> {
        let found = self.0.step();
        // Of the type by the bounds of the series.
        found.into_iter().for_each(|value| out[0].int4(value as i32));
        Ok(found.is_some())
    }
}

struct Series8(Integers);

impl Series for Series8 {
    fn next(&mut self, out: &mut [Cells]) -> Outcome<bool> {
        let found = self.0.step();
        found.into_iter().for_each(|value| out[0].int8(value));
        Ok(found.is_some())
    }
}

fn integers(numbers: &[i64], least: i64, most: i64) -> Outcome<Integers> {
    let step = numbers.get(2).copied().unwrap_or(1);
    match step {
        0 => Err(parameter("step size cannot equal zero")),
        _ => Ok(Integers { next: Some(numbers[0]), finish: numbers[1], step, least, most }),
    }
}

pub(super) fn series4(_: &SetCall, arguments: &[ArrayRef], row: usize) -> Outcome<Box<dyn Series>> {
    let number = |column: &ArrayRef| i64::from(column.as_primitive::<Int32Type>().value(row));
    let numbers: Vec<i64> = arguments.iter().map(number).collect();
    Ok(Box::new(Series4(integers(&numbers, i32::MIN.into(), i32::MAX.into())?)))
}

pub(super) fn series8(_: &SetCall, arguments: &[ArrayRef], row: usize) -> Outcome<Box<dyn Series>> {
    let number = |column: &ArrayRef| column.as_primitive::<Int64Type>().value(row);
    let numbers: Vec<i64> = arguments.iter().map(number).collect();
    Ok(Box::new(Series8(integers(&numbers, i64::MIN, i64::MAX)?)))
}

struct Numerics {
    next: Value,
    finish: Value,
    step: Value,
}

impl Series for Numerics {
    fn next(&mut self, out: &mut [Cells]) -> Outcome<bool> {
        let left = sign(&subtract(&self.finish, &self.next)?).unwrap_or(0);
        let is_up = sign(&self.step) == Some(1);
        if if is_up { left < 0 } else { left > 0 } {
            return Ok(false);
        }
        out[0].bytes(&self.next.payload()?)?;
        self.next = add(&self.next, &self.step)?;
        Ok(true)
    }
}

pub(super) fn numeric_series(
    _: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let number = |column: &ArrayRef| Value::parse(payloads(column).value(row));
    let mut numbers = arguments.iter().map(number).collect::<Outcome<Vec<Value>>>()?;
    for (number, what) in numbers.iter().zip(["start value", "stop value", "step size"]) {
        match number {
            Value::NaN => return Err(parameter(&format!("{what} cannot be NaN"))),
            Value::Finite(_) => {}
            _ => return Err(parameter(&format!("{what} cannot be infinity"))),
        }
    }
    let step = if numbers.len() > 2 { numbers.remove(2) } else { Number::new(1i64, 0).into() };
    if sign(&step).is_none_or(|sign| sign.cmp(&0) == Ordering::Equal) {
        return Err(parameter("step size cannot equal zero"));
    }
    let finish = numbers.remove(1);
    Ok(Box::new(Numerics { next: numbers.remove(0), finish, step }))
}
