//! The files of a new heap, for `load`, `generate` and `clone`: a fork that was not there, pages filled by a thread, and the
//! maps beside them.

pub(crate) mod maps;
pub(crate) mod new_fork;
pub(crate) mod page_run;
