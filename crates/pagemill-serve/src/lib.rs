#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod endpoints;
pub mod error;
pub mod protocol;
pub mod registry;

pub use error::{Error, Result};
