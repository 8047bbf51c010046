#![doc = include_str!("../README.md")]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod aligned_buffer;
#[cfg(test)]
mod alone;
pub mod cachestat;
mod fault_table;
pub mod mapping;
pub mod ring;
mod sigbus;

pub use aligned_buffer::{ALIGNMENT, AlignedBuffer};
pub use cachestat::{CacheStat, cachestat};
pub use mapping::{Faulted, LISTED_PAGES, MAX_MAPPINGS, MapAdvice, Mapping};
pub use ring::{Completed, Ring, RingFile, RingFull};
