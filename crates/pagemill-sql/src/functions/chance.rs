//! Values by chance: `random()` and `gen_random_uuid()`.
//!
//! Each call begins with a seed of its own, which the standard library draws from the system.
//!
//! Invariant: the query engine knows that two calls differ, and computes neither ahead of its row.
//!
//! Source: `drandom` in `src/backend/utils/adt/float.c`, `pg_prng_double` in `src/common/pg_prng.c`, `gen_random_uuid` in
//! `src/backend/utils/adt/uuid.c`, PostgreSQL 15 to 18.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, Float64Array};
use arrow::datatypes::DataType;
use datafusion::common::Result as QueryResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::{Build, Implementation};
use crate::error::Result;
use crate::typed::Typed;

pub(crate) fn find(key: &str) -> Option<Implementation> {
    match key {
        "drandom" | "gen_random_uuid" => Some(Implementation::Build(drawn)),
        _ => None,
    }
}

fn drawn(build: &Build<'_>) -> Result<Typed> {
    let signature = Signature::nullary(Volatility::Volatile);
    let is_uuid = build.key == "gen_random_uuid";
    let function = Arc::new(ScalarUDF::new_from_impl(Draw { is_uuid, signature }));
    let expr = Expr::ScalarFunction(ScalarFunction::new_udf(function, Vec::new()));
    Ok(build.done(expr, carrier(is_uuid)))
}

fn carrier(is_uuid: bool) -> DataType {
    if is_uuid { DataType::Binary } else { DataType::Float64 }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Draw {
    is_uuid: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Draw {
    fn name(&self) -> &str {
        if self.is_uuid { "gen_random_uuid" } else { "random" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(carrier(self.is_uuid))
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> QueryResult<ColumnarValue> {
        let mut numbers = Numbers::new();
        let rows = given.number_rows;
        let array: ArrayRef = match self.is_uuid {
            false => Arc::new(Float64Array::from_iter_values((0..rows).map(|_| numbers.share()))),
            true => {
                let mut uuids = BinaryBuilder::with_capacity(rows, rows * 16);
                (0..rows).for_each(|_| uuids.append_value(numbers.uuid()));
                Arc::new(uuids.finish())
            }
        };
        Ok(ColumnarValue::Array(array))
    }
}

/// Numbers that nobody foresees, each a hash of its place under keys of the system's.
struct Numbers {
    keys: RandomState,
    place: u64,
}

impl Numbers {
    fn new() -> Self {
        Self { keys: RandomState::new(), place: 0 }
    }

    fn next(&mut self) -> u64 {
        self.place += 1;
        self.keys.hash_one(self.place)
    }

    /// From 0 to 1, without 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 12) as f64 / (1_u64 << 52) as f64
    }

    /// Of version 4.
    fn uuid(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next().to_be_bytes());
        bytes[8..].copy_from_slice(&self.next().to_be_bytes());
        bytes[6] = bytes[6] & 0x0F | 0x40;
        bytes[8] = bytes[8] & 0x3F | 0x80;
        bytes
    }
}
