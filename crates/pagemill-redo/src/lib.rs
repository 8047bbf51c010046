#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod brin;
mod btree;
mod change;
mod effect;
mod error;
mod generic;
mod gin;
mod gist;
mod hash;
mod heap;
mod heap2;
#[cfg(test)]
mod heap_tests;
mod heap_tuple;
mod index_page;
#[cfg(test)]
mod index_tests;
mod managers;
mod page_items;
mod prune;
mod sequence;
mod spgist;
mod tuple_changes;
mod visibility_map;
mod xlog;

pub use change::RedoSite;
pub use effect::{Effect, effect};
pub use error::{RedoError, Result};
pub use managers::{is_redone, redo};
pub use tuple_changes::{TupleAction, TupleChange, tuple_changes};
