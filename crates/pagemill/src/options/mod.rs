//! The flags that several commands share, and the texts of flags taken apart.
//!
//! Flags of one command are beside it, in its own file of arguments.

pub(crate) mod values;
pub(crate) mod write;
