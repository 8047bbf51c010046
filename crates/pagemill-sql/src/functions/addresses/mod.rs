//! `inet`, `cidr`, `macaddr` and `macaddr8`: parts, operators, and one type as the other.
//!
//! Their comparisons are those of their keys ([`super::keys`]).
//!
//! Source: `src/backend/utils/adt/network.c`, `mac.c`, `mac8.c`, PostgreSQL 14 to 18.

mod abbreviated;
mod hardware;
mod network;

use arrow::array::ArrayRef;

use super::rows::{Outcome, Plain, run};
use super::{Implementation, KernelCall};

pub(crate) use network::order_key;

pub(crate) fn find(key: &str) -> Option<Implementation> {
    plain(key).map(|_| Implementation::Kernel(kernel))
}

/// Functions that depend on their arguments alone.
pub(super) fn plain(key: &str) -> Option<Plain> {
    network::plain(key).or_else(|| hardware::plain(key))
}

fn kernel(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    run(plain, call, arguments)
}
