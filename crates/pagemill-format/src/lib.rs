#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod btree;
pub mod checksum;
pub mod control;
pub mod error;
pub mod ids;
pub mod lz4;
pub mod page;
pub mod pglz;
pub mod reader;
pub mod relmap;
pub mod slru;
pub mod time_zone;
pub mod tuple;
pub mod twophase;
pub mod types;
pub mod varlena;
pub mod visibility_map;

pub use error::{Error, Result};
pub use ids::*;
