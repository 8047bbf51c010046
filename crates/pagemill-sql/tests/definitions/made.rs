//! The objects whose definitions are written out in the tests: for those of the program, and for those of trees with something changed
//! in them.
//!
//! Invariant: each stands beside the version that it came with.

/// Statements that make them, with the first version that takes them.
pub(crate) const MADE: [(u32, &str); 6] = [
    (14, include_str!("objects.sql")),
    (14, include_str!("commands.sql")),
    (15, include_str!("commands_15.sql")),
    (16, include_str!("commands_16.sql")),
    (17, include_str!("commands_17.sql")),
    (18, include_str!("commands_18.sql")),
];
