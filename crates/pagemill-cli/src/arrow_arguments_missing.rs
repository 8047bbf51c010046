//! The flags of Parquet and Arrow in a program that was built without them: taken, so that they are answered with how to build
//! them in, and not called unknown.
//!
//! Invariant: whatever their values are, they are taken.

use clap::Args;

/// The flags of those formats.
#[derive(Debug, Args)]
pub struct ArrowArguments {
    #[arg(long, hide = true)]
    compression: Option<String>,
    #[arg(long, hide = true)]
    row_group_size: Option<String>,
    #[arg(long, hide = true)]
    numeric: Option<String>,
    #[arg(long, hide = true)]
    infinity: Option<String>,
    #[arg(long, hide = true)]
    arrays: Option<String>,
    #[arg(long, hide = true)]
    partition_by: Option<String>,
}

impl ArrowArguments {
    /// The first of them that was given, by its name.
    pub fn given(&self) -> Option<&'static str> {
        let flags = [
            ("compression", &self.compression),
            ("row-group-size", &self.row_group_size),
            ("numeric", &self.numeric),
            ("infinity", &self.infinity),
            ("arrays", &self.arrays),
            ("partition-by", &self.partition_by),
        ];
        flags.into_iter().find(|(_, value)| value.is_some()).map(|(flag, _)| flag)
    }
}
