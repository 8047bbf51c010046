#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod control;
pub mod error;
pub mod ids;
pub mod reader;
pub mod relmap;
pub mod slru;
pub mod twophase;
pub mod types;
pub mod visibility_map;

pub use error::{Error, Result};
pub use ids::*;
