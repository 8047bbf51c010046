#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod access;
pub mod certificate;
pub mod command;
mod connection;
pub mod endpoints;
pub mod error;
pub mod protocol;
pub mod registry;
pub mod running;
pub mod scram;
pub mod server;
pub mod settings;
pub mod tls;

pub use error::{Error, Result};
