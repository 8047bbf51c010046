#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod error;
pub mod ids;
pub mod reader;
pub mod types;

pub use error::{Error, Result};
pub use ids::*;
