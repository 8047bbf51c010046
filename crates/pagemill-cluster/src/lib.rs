//! placeholder
#![forbid(unsafe_code)]

pub mod names;
pub mod settings;
