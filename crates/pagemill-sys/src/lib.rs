#![doc = include_str!("../README.md")]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod aligned_buffer;
pub mod cachestat;
mod fault_table;
pub mod mapping;
mod sigbus;

pub use aligned_buffer::{ALIGNMENT, AlignedBuffer};
pub use cachestat::{CacheStat, cachestat};
pub use mapping::{Faulted, LISTED_PAGES, MAX_MAPPINGS, MapAdvice, Mapping};
