//! Functions of single values made functions of whole columns: NULL where an argument is, else what the function gives.
//!
//! A [`Plain`] function needs nothing but its arguments, neither the catalogs nor the types of the call, so that tests hold
//! it against a server's results.
//!
//! Invariant: a column of texts or payloads never outgrows its offsets; that is an error.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BinaryBuilder, BooleanArray, Float32Array, Float64Array,
    Int16Array, Int32Array, Int64Array, StringArray, StringBuilder, UInt32Array, UInt64Array,
};

use super::KernelCall;
use crate::error::StatementError;

/// What a function of one row gives.
pub(crate) type Outcome<T> = Result<T, StatementError>;

/// A function of whole columns that depends on its arguments alone.
pub(crate) type Plain = fn(&[ArrayRef]) -> Outcome<ArrayRef>;

/// Where a module keeps its plain functions.
pub(crate) type FindPlain = fn(&str) -> Option<Plain>;

/// The plain function of the call's name.
pub(crate) fn run(find: FindPlain, call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let plain = find(&call.key).expect("a kernel is found by its name"); // infallible: it was when the call was made
    plain(arguments)
}

/// A value as a column holds it.
pub(crate) trait Held<'a>: Sized {
    type Column: Array + 'static;
    fn at(column: &'a Self::Column, row: usize) -> Self;
}

macro_rules! held {
    ($($value:ty, $column:ty;)*) => {$(
        impl<'a> Held<'a> for $value {
            type Column = $column;
            fn at(column: &'a $column, row: usize) -> Self { column.value(row) }
        }
    )*};
}
held! {
    &'a str, StringArray; &'a [u8], BinaryArray; bool, BooleanArray; i16, Int16Array;
    i32, Int32Array; i64, Int64Array; f32, Float32Array; f64, Float64Array;
    u32, UInt32Array; u64, UInt64Array;
}

/// A value that a column can be made of.
pub(crate) trait Made: Sized {
    fn column(values: Vec<Option<Self>>) -> Outcome<ArrayRef>;
}

macro_rules! made {
    ($($value:ty, $column:ty;)*) => {$(
        impl Made for $value {
            fn column(values: Vec<Option<Self>>) -> Outcome<ArrayRef> {
                Ok(Arc::new(<$column>::from(values)))
            }
        }
    )*};
}
made! {
    bool, BooleanArray; i16, Int16Array; i32, Int32Array; i64, Int64Array; f32, Float32Array;
    f64, Float64Array; u32, UInt32Array; u64, UInt64Array;
}

impl Made for String {
    fn column(values: Vec<Option<Self>>) -> Outcome<ArrayRef> {
        let bytes = total(values.iter().flatten().map(String::len))?;
        let mut texts = StringBuilder::with_capacity(values.len(), bytes);
        values.iter().for_each(|value| texts.append_option(value.as_deref()));
        Ok(Arc::new(texts.finish()))
    }
}

impl Made for Vec<u8> {
    fn column(values: Vec<Option<Self>>) -> Outcome<ArrayRef> {
        let bytes = total(values.iter().flatten().map(Vec::len))?;
        let mut payloads = BinaryBuilder::with_capacity(values.len(), bytes);
        values.iter().for_each(|value| payloads.append_option(value.as_deref()));
        Ok(Arc::new(payloads.finish()))
    }
}

/// The bytes of a column, if it has room for them.
fn total(lengths: impl Iterator<Item = usize>) -> Outcome<usize> {
    let total: usize = lengths.sum();
    match i32::try_from(total) {
        Ok(_) => Ok(total),
        Err(_) => Err(StatementError::unsupported("a batch of more than 2 GB of texts")),
    }
}

/// What a function of one row may give: a value, or perhaps NULL.
pub(crate) trait Given {
    type Value: Made;
    fn given(self) -> Option<Self::Value>;
}

macro_rules! given {
    ($($value:ty),*) => {$(
        impl Given for $value {
            type Value = Self;
            fn given(self) -> Option<Self> { Some(self) }
        }
    )*};
}
given!(bool, i16, i32, i64, f32, f64, u32, u64, String, Vec<u8>);

impl<T: Made> Given for Option<T> {
    type Value = T;
    fn given(self) -> Option<T> {
        self
    }
}

/// A column of arguments.
struct Argument<'a, A: Held<'a>>(&'a A::Column);

impl<'a, A: Held<'a>> Argument<'a, A> {
    fn new(array: &'a ArrayRef) -> Self {
        let column = array.as_any().downcast_ref();
        Self(column.expect("a column has the carrier of its type")) // infallible: types were settled
    }

    fn get(&self, row: usize) -> Option<A> {
        (!self.0.is_null(row)).then(|| A::at(self.0, row))
    }
}

fn collect<G: Given>(
    rows: usize,
    mut of: impl FnMut(usize) -> Option<Outcome<G>>,
) -> Outcome<ArrayRef> {
    let one = |row| of(row).transpose().map(|found| found.and_then(Given::given));
    Made::column((0..rows).map(one).collect::<Outcome<Vec<Option<G::Value>>>>()?)
}

/// A function of one argument.
pub(crate) fn one<'a, A: Held<'a>, G: Given>(
    arguments: &'a [ArrayRef],
    mut of: impl FnMut(A) -> Outcome<G>,
) -> Outcome<ArrayRef> {
    let a = Argument::<A>::new(&arguments[0]);
    collect(arguments[0].len(), |row| Some(of(a.get(row)?)))
}

/// A function of two arguments.
pub(crate) fn two<'a, A: Held<'a>, B: Held<'a>, G: Given>(
    arguments: &'a [ArrayRef],
    mut of: impl FnMut(A, B) -> Outcome<G>,
) -> Outcome<ArrayRef> {
    let (a, b) = (Argument::<A>::new(&arguments[0]), Argument::<B>::new(&arguments[1]));
    collect(arguments[0].len(), |row| Some(of(a.get(row)?, b.get(row)?)))
}

/// A function of three arguments.
pub(crate) fn three<'a, A: Held<'a>, B: Held<'a>, C: Held<'a>, G: Given>(
    arguments: &'a [ArrayRef],
    mut of: impl FnMut(A, B, C) -> Outcome<G>,
) -> Outcome<ArrayRef> {
    let (a, b) = (Argument::<A>::new(&arguments[0]), Argument::<B>::new(&arguments[1]));
    let c = Argument::<C>::new(&arguments[2]);
    collect(arguments[0].len(), |row| Some(of(a.get(row)?, b.get(row)?, c.get(row)?)))
}

/// A function of four arguments.
pub(crate) fn four<'a, A: Held<'a>, B: Held<'a>, C: Held<'a>, D: Held<'a>, G: Given>(
    arguments: &'a [ArrayRef],
    mut of: impl FnMut(A, B, C, D) -> Outcome<G>,
) -> Outcome<ArrayRef> {
    let (a, b) = (Argument::<A>::new(&arguments[0]), Argument::<B>::new(&arguments[1]));
    let (c, d) = (Argument::<C>::new(&arguments[2]), Argument::<D>::new(&arguments[3]));
    collect(arguments[0].len(), |row| Some(of(a.get(row)?, b.get(row)?, c.get(row)?, d.get(row)?)))
}
