//! The flags of a program that may read a data directory on an object store: what is kept of it on this machine.
//!
//! Invariant: they are there only in a program that reads object stores; another has none, and [`RemoteArguments`] is empty.

#[cfg(feature = "remote")]
use std::path::PathBuf;

use clap::Args;

/// What is kept on this machine of what comes from object stores.
#[derive(Debug, Clone, Default, Args)]
pub struct RemoteArguments {
    /// Where pieces of objects are kept that came over the network; none for nowhere [default: pagemill in XDG_CACHE_HOME or
    /// ~/.cache]
    #[cfg(feature = "remote")]
    #[arg(long, help_heading = HEADING, value_name = "DIR")]
    pub remote_cache: Option<PathBuf>,
    /// Maximum number of bytes kept there: a number, or one with kB, MB, GB or TB
    #[cfg(feature = "remote")]
    #[arg(long, help_heading = HEADING, value_name = "SIZE", default_value = "4GB", value_parser = crate::read_arguments::size)]
    pub remote_cache_size: u64,
}

#[cfg(feature = "remote")]
const HEADING: &str = "Object storage";
