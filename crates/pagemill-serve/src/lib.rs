#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod access;
pub mod activity;
pub mod certificate;
pub mod command;
mod connection;
pub mod endpoints;
pub mod error;
pub mod metrics;
pub mod opened;
pub mod opening;
pub mod protocol;
pub mod registry;
pub mod running;
pub mod scram;
pub mod served_cluster;
pub mod server;
pub mod service_manager;
pub mod settings;
pub mod status;
pub mod tls;

pub use error::{Error, Result};
